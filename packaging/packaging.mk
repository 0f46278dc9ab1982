# Packages and the container image, all below build/dist. Included by the Makefile; uses $(VERSION), and
# for ARCH=arm64 what that chose.
#
# They are built from the last commit, and two builds of one commit are identical; SOURCE=worktree
# takes the files as they are instead. See packaging/README.md.

DIST := build/dist
STAGED := $(DIST)/sidflake-$(VERSION)
SOURCE ?= HEAD
# Time of the last commit, or of the last change that the Debian changelog tells.
SOURCE_EPOCH = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),$(shell \
	dpkg-parsechangelog -l packaging/debian/changelog -S Timestamp))
IMAGE ?= sidflake:$(VERSION)

# Where alerts send people: to RUNBOOK.md at this URL. The packages put it there, and no home page of the
# project is known. Where yours can be read in a browser, `make alerts RUNBOOK_URL=https://...`.
RUNBOOK_URL ?= file:///usr/share/doc/sidflake/RUNBOOK.md

# As Debian and RPM call what is built for, and what a build for another architecture is told.
DEB_ARCH = $(or $(ARCH),$(shell dpkg --print-architecture))
RPM_ARCH = $(or $(CPU),$(shell uname -m))
ifneq ($(ARCH),)
CROSS_ENV = SYSROOT=$(CURDIR)/$(SYSROOT) EMULATOR='$(EMULATOR)' AR=$(AR) \
	CC='$(TRIPLET)-gcc --sysroot=$(CURDIR)/$(SYSROOT) -ffile-prefix-map=$(CURDIR)/$(SYSROOT)='
endif
# Of this make a package's own learns nothing but that.
CLEAN_ENV = env $(addprefix -u ,MAKEFLAGS MAKELEVEL MFLAGS ARCH SYSROOT EMULATOR) \
	SOURCE_DATE_EPOCH=$(SOURCE_EPOCH) $(CROSS_ENV)

# What the job needs, and the source. In a target of its own, since what a recipe asks of git and dpkg is asked
# before its first line runs.
ready-%:
	@$(MAKE) --no-print-directory deps && tools/install-deps $* && SOURCE=$(SOURCE) packaging/stage $(STAGED)

.PHONY: deb rpm image alerts release check-files check-packaging

# They share the staged source.
ifneq ($(filter deb rpm image check-packaging,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

deb: ready-deb
	cp -r $(STAGED)/packaging/debian $(STAGED)/debian
	rm -f $(foreach e,deb changes buildinfo,$(DIST)/*_$(DEB_ARCH).$(e))
	cd $(STAGED) && $(CLEAN_ENV) dpkg-buildpackage -b -us -uc $(ARCH:%=-d -a%)
	@rm -rf $(STAGED)
	@ls -l $(DIST)/*_$(DEB_ARCH).deb

# Debian's rpmbuild knows no installed rpm, so that it cannot check BuildRequires.
rpm: ready-rpm
	rm -rf $(DIST)/rpmbuild $(DIST)/*.$(RPM_ARCH).rpm $(if $(ARCH),,$(DIST)/*.src.rpm)
	mkdir -p $(DIST)/rpmbuild/SOURCES
	tar -c --sort=name --owner=0 --group=0 --mtime=@$(SOURCE_EPOCH) -C $(DIST) sidflake-$(VERSION) | \
		gzip -n >$(DIST)/rpmbuild/SOURCES/sidflake-$(VERSION).tar.gz
	$(CLEAN_ENV) rpmbuild $(if $(ARCH),-bb,-ba) --define '_topdir $(CURDIR)/$(DIST)/rpmbuild' \
		$(CPU:%=--target % --define '__strip $(TRIPLET)-strip' --define '__objdump $(TRIPLET)-objdump') \
		$(if $(wildcard /etc/debian_version),--nodeps) $(STAGED)/packaging/rpm/sidflake.spec
	mv $(DIST)/rpmbuild/RPMS/*/*.rpm $(if $(ARCH),,$(DIST)/rpmbuild/SRPMS/*.rpm) $(DIST)
	@rm -rf $(STAGED) $(DIST)/rpmbuild
	@ls -l $(DIST)/*.$(RPM_ARCH).rpm

image: ready-image
	$(CLEAN_ENV) REVISION=$(shell git rev-parse HEAD 2>/dev/null) \
		packaging/image/build $(STAGED) $(DIST) $(IMAGE) $(ARCH)
	@rm -rf $(STAGED)

alerts:
	packaging/prometheus/generate $(RUNBOOK_URL)

release:
	packaging/release

check-files: programs
	@tools/install-deps files
	@packaging/check-files

check-packaging: $(if $(ARCH),,check-files) deb rpm $(if $(shell command -v buildah),image)
	@tools/install-deps check
	EMULATOR='$(EMULATOR)' packaging/check $(DIST) $(ARCH)

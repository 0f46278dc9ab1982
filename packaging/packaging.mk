# Packages and the container image, all below build/dist. Included by the Makefile; uses $(VERSION).
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

.PHONY: deb rpm image alerts release check-files check-packaging

# They share the staged source.
ifneq ($(filter deb rpm image check-packaging,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

deb:
	@tools/install-deps build deb
	@SOURCE=$(SOURCE) packaging/stage $(STAGED)
	cp -r $(STAGED)/packaging/debian $(STAGED)/debian
	rm -f $(DIST)/*.deb $(DIST)/*.changes $(DIST)/*.buildinfo
	cd $(STAGED) && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS SOURCE_DATE_EPOCH=$(SOURCE_EPOCH) \
		dpkg-buildpackage -b -us -uc
	@rm -rf $(STAGED)
	@ls -l $(DIST)/*.deb

# Debian's rpmbuild knows no installed rpm, so that it cannot check BuildRequires.
rpm:
	@tools/install-deps build rpm
	@SOURCE=$(SOURCE) packaging/stage $(STAGED)
	rm -rf $(DIST)/rpmbuild $(DIST)/*.rpm
	mkdir -p $(DIST)/rpmbuild/SOURCES
	tar -c --sort=name --owner=0 --group=0 --mtime=@$(SOURCE_EPOCH) -C $(DIST) sidflake-$(VERSION) | \
		gzip -n >$(DIST)/rpmbuild/SOURCES/sidflake-$(VERSION).tar.gz
	env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS SOURCE_DATE_EPOCH=$(SOURCE_EPOCH) \
		rpmbuild -ba --define '_topdir $(CURDIR)/$(DIST)/rpmbuild' \
		$(if $(wildcard /etc/debian_version),--nodeps) $(STAGED)/packaging/rpm/sidflake.spec
	mv $(DIST)/rpmbuild/RPMS/*/*.rpm $(DIST)/rpmbuild/SRPMS/*.rpm $(DIST)
	@rm -rf $(STAGED) $(DIST)/rpmbuild
	@ls -l $(DIST)/*.rpm

image:
	@tools/install-deps build image
	@SOURCE=$(SOURCE) packaging/stage $(STAGED)
	REVISION=$(shell git rev-parse HEAD 2>/dev/null) SOURCE_DATE_EPOCH=$(SOURCE_EPOCH) \
		packaging/image/build $(STAGED) $(DIST) $(IMAGE)
	@rm -rf $(STAGED)

alerts:
	packaging/prometheus/generate $(RUNBOOK_URL)

release:
	packaging/release

check-files: programs
	@tools/install-deps files
	@packaging/check-files

check-packaging: check-files deb rpm $(if $(shell command -v buildah),image)
	packaging/check $(DIST)

// helm-template CHART RELEASE [VALUES-FILE]: what `helm template RELEASE CHART -f VALUES-FILE` writes, for
// hosts without helm, such as Debian's, which has the parts it is made of. It knows as much of Helm as
// these charts use, and charts/ below a chart.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type values = map[string]interface{}

// files is what `.Files` offers.
type files string

func (f files) Get(name string) string {
	text, err := os.ReadFile(filepath.Join(string(f), name))
	if err != nil {
		return ""
	}
	return string(text)
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "helm-template:", err)
		os.Exit(1)
	}
}

func read(path string) values {
	v := values{}
	text, err := os.ReadFile(path)
	must(err)
	must(yaml.UnmarshalStrict(text, &v))
	return v
}

// over gives base with what stands in top put over it; null takes a key away.
func over(base, top values) values {
	for key, value := range top {
		below, _ := base[key].(values)
		if above, ok := value.(values); ok && below != nil {
			base[key] = over(below, above)
		} else if value == nil {
			delete(base, key)
		} else {
			base[key] = value
		}
	}
	return base
}

func add(t *template.Template, path string) []string {
	var names []string
	found, err := filepath.Glob(filepath.Join(path, "templates", "*"))
	must(err)
	for _, name := range found {
		text, err := os.ReadFile(name)
		must(err)
		template.Must(t.New(name).Parse(string(text)))
		if !strings.HasPrefix(filepath.Base(name), "_") && strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// load adds the templates of a chart, and gives its context and those to be run in it.
func load(t *template.Template, path, release string, root bool, given values,
	run map[string]values) values {
	chart := read(filepath.Join(path, "Chart.yaml"))
	about := values{"IsRoot": root}
	for key, value := range chart {
		about[strings.ToUpper(key[:1])+key[1:]] = value
	}
	v := over(read(filepath.Join(path, "values.yaml")), given)
	below := values{}
	charts, err := filepath.Glob(filepath.Join(path, "charts", "*"))
	must(err)
	for _, sub := range charts {
		name := filepath.Base(sub)
		mine, _ := v[name].(values)
		below[name] = load(t, sub, release, false, mine, run)
	}
	context := values{"Values": v, "Chart": about, "Files": files(path), "Subcharts": below,
		"Release": values{"Name": release, "Namespace": "default", "Service": "Helm"}}
	for _, name := range add(t, path) {
		run[name] = context
	}
	return context
}

func main() {
	if len(os.Args) < 3 {
		must(errors.New("expected CHART RELEASE [VALUES-FILE]"))
	}
	given := values{}
	if len(os.Args) > 3 {
		given = read(os.Args[3])
	}
	t := template.New("").Option("missingkey=error")
	toYaml := func(v interface{}) (string, error) {
		text, err := yaml.Marshal(v)
		return strings.TrimSuffix(string(text), "\n"), err
	}
	t.Funcs(sprig.TxtFuncMap()).Funcs(template.FuncMap{
		"toYaml": toYaml,
		"include": func(name string, context interface{}) (string, error) {
			var out bytes.Buffer
			err := t.ExecuteTemplate(&out, name, context)
			return out.String(), err
		},
		"required": func(message string, v interface{}) (interface{}, error) {
			if v == nil || v == "" {
				return nil, errors.New(message)
			}
			return v, nil
		},
	})
	run := map[string]values{}
	load(t, os.Args[1], os.Args[2], true, given, run)
	var names []string
	for name := range run {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		var out bytes.Buffer
		must(t.ExecuteTemplate(&out, name, run[name]))
		if strings.TrimSpace(out.String()) != "" {
			fmt.Printf("---\n# Source: %s\n%s\n", name, out.String())
		}
	}
}

// Weight checks what an import of the package orchestra brings into a build: at
// most 20 modules, and a stripped program below 14 MB.
package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	const module = "github.com/toolorchestra/toolorchestra-go"
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", module+"/orchestra").Output()
	if err != nil {
		log.Fatal(err)
	}
	modules := map[string]bool{}
	for m := range strings.FieldsSeq(string(out)) {
		if m != module {
			modules[m] = true
		}
	}
	dir, err := os.MkdirTemp("", "weight")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "program")
	if out, err := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, module+"/examples/custommodel").CombinedOutput(); err != nil {
		log.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		log.Fatal(err)
	}
	mb := float64(info.Size()) / 1e6
	fmt.Printf("%d modules, a program of %.1f MB\n", len(modules), mb)
	if len(modules) > 20 || mb > 14 {
		log.Fatal("too heavy: at most 20 modules and 14 MB")
	}
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolorchestra/toolorchestra-go/tools"
)

// goDocuments makes documents of the standard library of this machine's Go: one
// for each exported function, method, type, constant and variable with its doc
// comment, and one for each paragraph about a package. It leaves out commands,
// internal and vendored packages.
func goDocuments(ctx context.Context) ([]tools.Document, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("asking the go command where Go is installed: %w", err)
	}
	src := filepath.Join(strings.TrimSpace(string(root)), "src")
	if _, err := os.Stat(filepath.Join(src, "fmt")); err != nil {
		return nil, fmt.Errorf("this Go installation came without its sources: %w", err)
	}
	var docs []tools.Document
	err = filepath.WalkDir(src, func(dir string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		if slices.Contains([]string{"internal", "vendor", "cmd", "testdata"}, e.Name()) {
			return fs.SkipDir
		}
		path, err := filepath.Rel(src, dir)
		if err != nil {
			return err
		}
		docs, err = appendPackage(docs, dir, filepath.ToSlash(path))
		return err
	})
	return docs, err
}

// appendPackage adds the documents of the package in dir, if there is one for
// this system.
func appendPackage(docs []tools.Document, dir, path string) ([]tools.Document, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return docs, err
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if ok, err := build.Default.MatchFile(dir, filepath.Base(name)); err != nil || !ok || strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return docs, err
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return docs, nil
	}
	p, err := doc.NewFromFiles(fset, files, path)
	if err != nil {
		return docs, err
	}
	if p.Name == "main" {
		return docs, nil
	}
	add := func(symbol, title, text string) {
		docs = append(docs, tools.Document{ID: path + "." + symbol, Title: title, URL: "https://pkg.go.dev/" + path + "#" + symbol, Text: strings.TrimSpace(text)})
	}
	for i, par := range strings.Split(strings.TrimSpace(p.Doc), "\n\n") {
		if par != "" {
			docs = append(docs, tools.Document{ID: fmt.Sprintf("%s#%d", path, i+1), Title: "package " + path, URL: "https://pkg.go.dev/" + path, Text: par})
		}
	}
	funcs := func(list []*doc.Func) {
		for _, f := range list {
			add(symbol(f), signature(fset, p.Name, f), f.Doc)
		}
	}
	values := func(list []*doc.Value) {
		for _, v := range list {
			for _, s := range v.Decl.Specs {
				s := s.(*ast.ValueSpec)
				for i, n := range s.Names {
					if !n.IsExported() {
						continue
					}
					title := v.Decl.Tok.String() + " " + p.Name + "." + n.Name
					if s.Type != nil {
						title += " " + source(fset, s.Type)
					}
					if i < len(s.Values) {
						title += " = " + source(fset, s.Values[i])
					}
					own := strings.TrimSpace(s.Doc.Text() + s.Comment.Text())
					add(n.Name, title, strings.TrimSpace(own+"\n\n"+v.Doc))
				}
			}
		}
	}
	funcs(p.Funcs)
	values(p.Consts)
	values(p.Vars)
	for _, t := range p.Types {
		kind := ""
		for _, s := range t.Decl.Specs {
			switch s := s.(*ast.TypeSpec); s.Type.(type) {
			case *ast.StructType:
				kind = " struct"
			case *ast.InterfaceType:
				kind = " interface"
			default:
				kind = " " + source(fset, s.Type)
			}
		}
		add(t.Name, "type "+p.Name+"."+t.Name+kind, t.Doc)
		funcs(t.Funcs)
		funcs(t.Methods)
		values(t.Consts)
		values(t.Vars)
	}
	return docs, nil
}

// symbol is Equal for a function and Reader.Read for a method.
func symbol(f *doc.Func) string {
	if f.Recv == "" {
		return f.Name
	}
	recv, _, _ := strings.Cut(strings.TrimPrefix(f.Recv, "*"), "[")
	return recv + "." + f.Name
}

// signature is the declaration of a function on one line, its name qualified
// by the package's: func bytes.Cut(s, sep []byte) ….
func signature(fset *token.FileSet, pkg string, f *doc.Func) string {
	decl := *f.Decl
	decl.Doc, decl.Body = nil, nil
	line := source(fset, &decl)
	if f.Recv == "" {
		return "func " + pkg + "." + strings.TrimPrefix(line, "func ")
	}
	recv := strings.TrimPrefix(f.Recv, "*")
	return strings.Replace(line, recv, pkg+"."+recv, 1)
}

// source prints a node on one line.
func source(fset *token.FileSet, node any) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, fset, node); err != nil {
		return ""
	}
	line := strings.Join(strings.Fields(b.String()), " ")
	if len(line) > 300 {
		line = strings.ToValidUTF8(line[:300], "") + "…"
	}
	return line
}

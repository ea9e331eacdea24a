"""Files of many types, made by this machine's own tools, for the detectors to name."""

import bz2
import gzip
import io
import json
import lzma
import pathlib
import pickle
import random
import sqlite3
import struct
import sys
import tarfile
import wave
import zipfile
import zlib

SOURCES = {
    "hello.c": '#include <stdio.h>\n\nint main(int argc, char **argv) {\n  for (int i = 0; i < argc; '
               '++i) printf("%s\\n", argv[i]);\n  return 0;\n}\n',
    "shape.cpp": '#include <memory>\n#include <vector>\n\nnamespace app {\ntemplate <typename T>\nclass '
                 'Shape {\n public:\n  virtual ~Shape() = default;\n  std::unique_ptr<T> area() const;\n'
                 '};\n}  // namespace app\n',
    "main.rs": 'use std::collections::HashMap;\n\nfn main() {\n    let mut seen: HashMap<String, usize> '
               '= HashMap::new();\n    for word in std::env::args() {\n        *seen.entry(word).or_insert'
               '(0) += 1;\n    }\n    println!("{:?}", seen);\n}\n',
    "main.go": 'package main\n\nimport (\n\t"fmt"\n\t"os"\n)\n\nfunc main() {\n\tfor i, a := range os.Args '
               '{\n\t\tfmt.Println(i, a)\n\t}\n}\n',
    "Main.java": 'package org.example;\n\nimport java.util.List;\n\npublic class Main {\n    public static '
                 'void main(String[] args) {\n        System.out.println(List.of(args));\n    }\n}\n',
    "App.cs": 'using System;\nusing System.Linq;\n\nnamespace App {\n  class Program {\n    static void '
              'Main(string[] args) {\n      Console.WriteLine(args.Sum(a => a.Length));\n    }\n  }\n}\n',
    "tool.py": 'import argparse\nimport os\n\n\ndef main():\n    parser = argparse.ArgumentParser()\n    '
               'parser.add_argument("path")\n    print(os.listdir(parser.parse_args().path))\n\n\nif '
               '__name__ == "__main__":\n    main()\n',
    "app.js": '"use strict";\nconst fs = require("fs");\n\nmodule.exports = async function load(path) {\n  '
              'const text = await fs.promises.readFile(path, "utf8");\n  return JSON.parse(text);\n};\n',
    "app.ts": 'interface Point {\n  readonly x: number;\n  readonly y: number;\n}\n\nexport function '
              'norm(p: Point): number {\n  return Math.hypot(p.x, p.y);\n}\n',
    "run.sh": '#!/bin/bash\nset -euo pipefail\nfor f in "$@"; do\n  if [ -f "$f" ]; then\n    wc -l "$f" '
              '| awk \'{print $1}\'\n  fi\ndone\n',
    "tool.rb": 'require "json"\n\nclass Tool\n  attr_reader :name\n\n  def initialize(name)\n    @name = '
               'name\n  end\n\n  def to_s = "Tool(#{name})"\nend\n\nputs Tool.new(ARGV.first)\n',
    "tool.pl": '#!/usr/bin/perl\nuse strict;\nuse warnings;\n\nmy %count;\nwhile (my $line = <>) {\n  '
               '$count{$_}++ for split /\\s+/, $line;\n}\nprint "$_ $count{$_}\\n" for sort keys %count;\n',
    "index.php": '<?php\nnamespace App;\n\nclass Controller {\n    public function show(int $id): string '
                 '{\n        return "<p>" . htmlspecialchars($id) . "</p>";\n    }\n}\necho (new '
                 'Controller())->show($_GET["id"]);\n',
    "list.lua": 'local M = {}\n\nfunction M.map(t, f)\n  local out = {}\n  for i, v in ipairs(t) do\n    '
                'out[i] = f(v)\n  end\n  return out\nend\n\nreturn M\n',
    "query.sql": 'CREATE TABLE users (id INTEGER PRIMARY KEY, name VARCHAR(80) NOT NULL);\nINSERT INTO '
                 'users (name) VALUES (\'Ada\'), (\'Grace\');\nSELECT u.name, COUNT(*) FROM users u '
                 'GROUP BY u.name HAVING COUNT(*) > 1;\n',
    "page.html": '<!DOCTYPE html>\n<html lang="en">\n<head><title>Page</title></head>\n<body>\n<h1>Hi</h1>'
                 '\n<p>A <a href="https://example.com">link</a>.</p>\n</body>\n</html>\n',
    "style.css": 'body {\n  margin: 0 auto;\n  font: 16px/1.5 sans-serif;\n}\n\n.card > a:hover {\n  color: '
                 '#c00;\n}\n',
    "feed.xml": '<?xml version="1.0" encoding="UTF-8"?>\n<catalog>\n  <book id="1"><title>A</title></book>\n'
                '  <book id="2"><title>B</title></book>\n</catalog>\n',
    "drawing.svg": '<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">\n'
                   '<circle cx="4" cy="4" r="3" fill="red"/>\n</svg>\n',
    "config.yaml": 'version: "3"\nservices:\n  web:\n    image: nginx:latest\n    ports:\n      - "80:80"\n'
                   '    environment:\n      MODE: test\n',
    "Cargo.toml": '[package]\nname = "demo"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\nserde '
                  '= { version = "1", features = ["derive"] }\n',
    "setup.ini": '[server]\nhost = localhost\nport = 8080\n\n[client]\ntimeout = 30\nretries = 3\n',
    "README.md": '# Project\n\nA *small* tool.\n\n## Install\n\n```sh\nmake install\n```\n\n- one\n- two\n\n'
                 '[docs](docs/index.md)\n',
    "Makefile": 'CC = gcc\nOBJS = main.o list.o\n\nall: app\n\napp: $(OBJS)\n\t$(CC) -o $@ $^\n\n.PHONY: '
                'clean\nclean:\n\trm -f app $(OBJS)\n',
    "Dockerfile": 'FROM debian:12\nRUN apt-get update && apt-get install -y curl\nWORKDIR /app\nCOPY . '
                  '.\nENTRYPOINT ["./run.sh"]\n',
    "CMakeLists.txt": 'cmake_minimum_required(VERSION 3.16)\nproject(demo CXX)\nadd_executable(demo '
                      'main.cpp)\ntarget_link_libraries(demo PRIVATE m)\n',
    "paper.tex": '\\documentclass{article}\n\\usepackage{amsmath}\n\\begin{document}\n\\section{One}\nLet '
                 '$x \\in \\mathbb{R}$ and \\[ \\int_0^1 x\\,dx = \\tfrac12. \\]\n\\end{document}\n',
    "people.csv": "id,name,city,score\n" + "".join(f"{i},name{i},city{i % 7},{i * 1.5}\n"
                                                   for i in range(40)),
    "people.tsv": "id\tname\tscore\n" + "".join(f"{i}\tname {i}\t{i * 2}\n" for i in range(40)),
    "mail.eml": 'From: a@example.com\nTo: b@example.com\nSubject: Hello\nDate: Mon, 1 Jan 2024 10:00:00 '
                '+0000\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\nHello there.\n',
    "fix.diff": 'diff --git a/x.c b/x.c\nindex 83db48f..bf269f4 100644\n--- a/x.c\n+++ b/x.c\n@@ -1,3 +1,3 @@'
                '\n int f() {\n-  return 1;\n+  return 2;\n }\n',
    "movie.srt": '1\n00:00:01,000 --> 00:00:03,500\nHello.\n\n2\n00:00:04,000 --> 00:00:06,000\nGoodbye.\n',
    "key.pem": '-----BEGIN CERTIFICATE-----\n' + 'MIIBszCCARygAwIBAgIUQ2hhbmdlIG1lIGxhdGVyIHBsZWFzZT\n' * 9 +
               '-----END CERTIFICATE-----\n',
    "msg.proto": 'syntax = "proto3";\n\npackage demo;\n\nmessage Person {\n  string name = 1;\n  repeated '
                 'int32 ids = 2;\n}\n',
    "run.bat": '@echo off\r\nsetlocal\r\nfor %%f in (*.txt) do (\r\n  echo %%f\r\n  type "%%f"\r\n)\r\n'
               'endlocal\r\n',
    "Lib.hs": 'module Lib (quicksort) where\n\nimport Data.List (partition)\n\nquicksort :: Ord a => [a] -> '
              '[a]\nquicksort [] = []\nquicksort (x:xs) = let (a, b) = partition (< x) xs in quicksort a '
              '++ [x] ++ quicksort b\n',
    "core.clj": '(ns app.core\n  (:require [clojure.string :as str]))\n\n(defn greet [name]\n  (println '
                '(str "Hello, " (str/upper-case name))))\n\n(defn -main [& args] (run! greet args))\n',
    "list.erl": '-module(list).\n-export([sum/1]).\n\nsum([]) -> 0;\nsum([H | T]) -> H + sum(T).\n',
    "doc.rst": 'Title\n=====\n\n.. code-block:: python\n\n   print("hi")\n\nSee :ref:`other` and ``code``.\n',
    "rows.jsonl": "".join(json.dumps({"id": i, "ok": i % 2 == 0}) + "\n" for i in range(30)),
    "prose.txt": "It was a bright cold day in April, and the clocks were striking. Nobody in the street "
                 "looked up; they had all seen the posters, and they had all learnt to look away.\n" * 5,
}


def text_files(folder):
    for name, text in SOURCES.items():
        (folder / name).write_bytes(text.encode())
    (folder / "data.json").write_text(json.dumps({"a": [1, 2, {"b": None}], "c": "text"}, indent=2))
    (folder / "latin1.txt").write_bytes("Ärger über größere Häuser, täglich.\n".encode("latin-1") * 9)
    (folder / "utf16.txt").write_bytes("Some text of two bytes each.\n".encode("utf-16") * 3)


def archives(folder):
    content = "".join(SOURCES.values()).encode()
    (folder / "x.gz").write_bytes(gzip.compress(content, mtime=0))
    (folder / "x.bz2").write_bytes(bz2.compress(content))
    (folder / "x.xz").write_bytes(lzma.compress(content))
    (folder / "x.zlib").write_bytes(zlib.compress(content))
    with zipfile.ZipFile(folder / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in SOURCES.items():
            archive.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), text)
    with tarfile.open(folder / "x.tar", "w") as archive:
        for name, text in list(SOURCES.items())[:5]:
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    with zipfile.ZipFile(folder / "lib.jar", "w") as archive:
        archive.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF"), "Manifest-Version: 1.0\n\n")
        archive.writestr(zipfile.ZipInfo("Main.class"), b"\xca\xfe\xba\xbe\0\0\0\x34" + bytes(200))


def binaries(folder):
    with sqlite3.connect(folder / "base.sqlite") as base:
        base.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
        base.executemany("INSERT INTO t (name) VALUES (?)", [(f"name {i}",) for i in range(200)])
    base.close()
    (folder / "program").write_bytes(pathlib.Path("/bin/true").read_bytes())
    (folder / "own_program").write_bytes(pathlib.Path(sys.executable).read_bytes()[:200000])

    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))
    rows = b"".join(b"\0" + bytes((x * y) & 255 for x in range(96)) for y in range(64))
    (folder / "p.png").write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 32, 64, 8, 2, 0, 0, 0)) +
        chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    (folder / "p.bmp").write_bytes(b"BM" + struct.pack("<IHHIIiiHHIIiiII", 54 + 3072, 0, 0, 54, 40, 32,
                                                       32, 1, 24, 0, 3072, 2835, 2835, 0, 0) +
                                   bytes(i & 255 for i in range(3072)))
    (folder / "p.gif").write_bytes(b"GIF89a\x20\x00\x20\x00\xf7\x00\x00" + bytes(range(256)) * 3 +
                                   b"\x2c" + bytes(600) + b"\x3b")
    with wave.open(str(folder / "tone.wav"), "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", "not compressed"))
        sound.writeframes(b"".join(struct.pack("<h", (i * 733) % 20000 - 10000) for i in range(4000)))
    (folder / "doc.pdf").write_bytes(
        b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< "
        b"/Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj\n3 0 obj\n<< /Type /Page /Parent 2 0 R >>\n"
        b"endobj\nxref\n0 4\n0000000000 65535 f \ntrailer\n<< /Size 4 /Root 1 0 R >>\nstartxref\n180\n"
        b"%%EOF\n")
    (folder / "x.pickle").write_bytes(pickle.dumps({"list": list(range(500)), "name": "x" * 80}))
    (folder / "Main.class").write_bytes(b"\xca\xfe\xba\xbe\0\0\0\x34\0\x1d\x0a\0\6\0\x0f\x09" + bytes(90))
    (folder / "module.wasm").write_bytes(b"\0asm\1\0\0\0\1\7\1\x60\2\x7f\x7f\1\x7f\3\2\1\0\7\7\1\3add\0\0"
                                         b"\x0a\x09\1\7\0\x20\0\x20\1\x6a\x0b")
    (folder / "a.npy").write_bytes(b"\x93NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': "
                                   b"(100,), }" + b" " * 58 + b"\n" + bytes(400))


def odd_files(folder):
    generator = random.Random(7)
    (folder / "empty").write_bytes(b"")
    (folder / "7 bytes").write_bytes(b"1234567")
    (folder / "7 binary bytes").write_bytes(b"\xff\xfe\xfd\xfc\xfb\xfa\xf9")
    (folder / "8 bytes").write_bytes(b"12345678")
    for size in (1023, 1024, 1025, 4095, 4096, 4097):
        (folder / f"{size} random bytes").write_bytes(generator.randbytes(size))
        (folder / f"{size} letters").write_bytes(bytes(generator.choices(b"abcdefgh \n", k=size)))
    (folder / "1 MB of c").write_bytes(SOURCES["hello.c"].encode() * 7000)
    (folder / "1 MB of zeros").write_bytes(bytes(1 << 20))
    (folder / "white space").write_bytes(b" \t\n\r\v\f" * 100)
    (folder / "white space around c").write_bytes(b"\n " * 400 + SOURCES["hello.c"].encode() +
                                                  b"\t\n" * 900)
    (folder / "white space and little").write_bytes(b" " * 500 + b"abc" + b"\n" * 100)
    (folder / "white space and a cut letter").write_bytes(b" " * 4095 + "é".encode() + b" " * 900)
    (folder / "white space and seven").write_bytes(b"\n" * 4090 + b"abcdefg" + b"\n" * 4090)
    (folder / "a folder").mkdir()
    (folder / "a link").symlink_to(folder / "hello.c")
    (folder / "a link to a folder").symlink_to(folder / "a folder")
    (folder / "a link to nothing").symlink_to(folder / "nothing")


def make_files(folder):
    """Fills the folder; the paths to name, one of which is not there and one no file."""
    for make in (text_files, archives, binaries, odd_files):
        make(folder)
    return sorted(folder.iterdir()) + [folder / "no such file", pathlib.Path("/dev/null")]

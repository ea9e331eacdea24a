"""The reference pages have all of tiny.h and no dead link; the man page has every command and flag."""

import html
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from support import BUILD, ROOT, run, version

sys.path.insert(0, str(ROOT / "bindings" / "generator"))
import header  # noqa: E402

PAGES = {page.name: page.read_text() for page in (BUILD / "documents/reference").glob("*.html")}
TINY = BUILD / "tools/tiny"


def words(text):
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", text)).replace("`", "").split())


class Reference(unittest.TestCase):
    def setUp(self):
        self.header = header.parse((ROOT / "include/tiny.h").read_text())

    def test_every_name_has_one_place(self):
        places = [name for page in PAGES.values() for name in re.findall(r'id="(\w+)"', page)]
        self.assertEqual(len(places), len(set(places)))
        names = {function.name for function in self.header.functions} | set(self.header.objects)
        names |= {value[0] for family in self.header.enumerations for value in family.values}
        self.assertEqual(names - set(places), set())

    def test_every_comment_is_there(self):
        said = words(" ".join(PAGES.values()))
        for function in self.header.functions:
            self.assertIn(words(function.doc), said, function.name)

    def test_links_lead_somewhere(self):
        count = 0
        for page in PAGES.values():
            for target in re.findall(r'href="([^"]+)"', page):
                name, _, place = target.partition("#")
                self.assertIn(name, PAGES)
                self.assertTrue(not place or f'id="{place}"' in PAGES[name], target)
                count += 1
        self.assertGreater(count, len(self.header.functions))
        self.assertIn(version(), PAGES["index.html"])


class ManPage(unittest.TestCase):
    def setUp(self):
        self.text = (BUILD / "documents/tiny.1").read_text()
        self.plain = self.text.replace("\\-", "-").replace("\\e", "\\").replace("\\&", "")

    def test_every_command_and_flag(self):
        listed = re.search(r"^Subcommands:\n(.*?)\n\n", run(TINY, "--help"), re.M | re.S)[1]
        commands = re.findall(r"^  (\w+)", listed, re.M)
        self.assertLessEqual({"run", "info", "bench", "test", "devices"}, set(commands))
        for command in commands:
            part = self.plain.split(f".SS tiny {command}\n")[1].split("\n.SS ")[0].split("\n.SH ")[0]
            flags = re.findall(r"^  (?:-\w,)?(--[\w-]+)", run(TINY, command, "--help"), re.M)
            self.assertIn("--help", flags)
            for flag in flags:
                self.assertRegex(part, rf"(?m)^\.B (?:-\w,)?{flag}\b", command)
        self.assertIn("interrupted", self.plain.split(".SH EXIT STATUS")[1])

    @unittest.skipUnless(shutil.which("groff"), "no groff here")
    def test_groff_reads_it(self):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", BUILD / "documents/tiny.1"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()

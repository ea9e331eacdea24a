"""Writes the reference pages of include/tiny.h: one HTML page for each of its sections, and an index.

Usage: make-reference.py HEADER VERSION FOLDER
A page has what the header says and no more: a declaration with its comment, and links between them.
"""

import html
import pathlib
import re
import sys

STYLE = """body{font:16px/1.5 sans-serif;max-width:60em;margin:2em auto;padding:0 1em}
pre{background:#f4f4f4;padding:.6em;overflow-x:auto;margin:1.5em 0 .3em}p{margin:.3em 0 .3em 1em}
pre,code{font:14px/1.4 monospace}pre:target{background:#ffe9a8}ul{columns:2}"""
NAME = re.compile(r"\b(?:tiny|TINY)_\w+\b")
COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*\*/")
SECTION = re.compile(r"^/\* ---- (.*?) -{2,}(.*?)\*/", re.M | re.S)
DECLARATION = re.compile(
    r"typedef [^;{]*;\s*\nenum \{.*?\};|TINY_API [^;]*;[^\n]*|typedef [^;]*;[^\n]*|struct \w+;"
    r"|#define TINY_(?!H\b|API\b)\w+ [^\n]*", re.S)


def words(comment):
    """The text of a comment, with its lines and without its stars."""
    body = re.sub(r"^/\*+|\*/$", "", comment.strip())
    return "\n".join(re.sub(r"^\s*\*\* ?", "", line).rstrip() for line in body.splitlines()).strip("\n")


def entries(text):
    """(comment, declarations) in the order of the text; what stands below one comment shares it."""
    found, comment = [], ""
    for part in re.finditer(f"({COMMENT.pattern})|({DECLARATION.pattern})", text, re.S):
        if part[1]:
            comment = words(part[1])
            found.append((comment, []))
        elif found:
            found[-1][1].append(part[2].rstrip())
        else:
            found.append(("", [part[2].rstrip()]))
    return found


def declared(declarations):
    """The names that declarations introduce, the functions' or types' before the values'."""
    names = []
    for text in declarations:
        plain = COMMENT.sub("", text)
        names += re.findall(r"\b(tiny_\w+)(?=\s*\()", plain)[:1] if plain.startswith("TINY_API") else []
        names += re.findall(r"\b(tiny_\w+);", plain) if plain.startswith("typedef") else []
        names += re.findall(r"\b(TINY_\w+)", plain) if not plain.startswith("TINY_API") else []
    return names


def parse(text):
    """(introduction, [(title, its own text, entries)])."""
    marks = list(SECTION.finditer(text))
    introduction = words(COMMENT.search(text)[0])
    sections = [("Basics", "", entries(text[COMMENT.search(text).end():marks[0].start()]))]
    for mark, following in zip(marks, [*marks[1:], None]):
        body = text[mark.end():following.start() if following else len(text)]
        sections.append((mark[1].strip(), words("/*" + mark[2] + "*/"), entries(body)))
    return introduction, [section for section in sections if section[2]]


def page_name(title):
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") + ".html"


def linked(text, places, here):
    """Escaped, with a link at each name that is declared elsewhere in the pages."""
    def link(found):
        place = places.get(found[0])
        if place is None or found[0] == here:
            return found[0]
        return f'<a href="{place}#{found[0]}">{found[0]}</a>'
    return NAME.sub(link, html.escape(text, quote=False))


def prose(text, places):
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", linked(text, places, ""))


def page(title, body):
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
            f"<style>{STYLE}</style></head><body>\n<h1>{html.escape(title)}</h1>\n{body}\n</body></html>\n")


def section_page(title, text, listed, places):
    parts = ['<p><a href="index.html">tiny.h</a></p>']
    if text:
        parts.append(f"<p>{prose(text, places)}</p>")
    seen = set()
    for comment, declarations in listed:
        anchors = ""
        for name in declared(declarations):
            if name not in seen:
                anchors += f'<a id="{name}"></a>'
                seen.add(name)
        if declarations:
            code = "\n".join(linked(text, places, "") for text in declarations)
            parts.append(f"{anchors}<pre>{code}</pre>")
        if comment:
            parts.append(f"<p>{prose(comment, places)}</p>")
    return page(title, "\n".join(parts))


def main(header, version, folder):
    introduction, sections = parse(pathlib.Path(header).read_text())
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    places = {}
    for title, _, listed in sections:
        for _, declarations in listed:
            for name in declared(declarations):
                places.setdefault(name, page_name(title))
    for title, text, listed in sections:
        (folder / page_name(title)).write_text(section_page(title, text, listed, places))
    contents = "".join(f'<li><a href="{page_name(title)}">{html.escape(title)}</a></li>' for title, *_ in sections)
    names = "".join(f'<li><a href="{places[name]}#{name}">{name}</a></li>' for name in sorted(places, key=str.lower))
    (folder / "index.html").write_text(page(
        f"tiny.h, version {version}",
        f"<pre>{linked(introduction, places, '')}</pre>\n<h2>Sections</h2>\n<ul>{contents}</ul>\n"
        f"<h2>Names</h2>\n<ul>{names}</ul>"))


if __name__ == "__main__":
    main(*sys.argv[1:4])

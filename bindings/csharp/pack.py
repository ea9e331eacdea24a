"""Makes the NuGet package Tiny.Engine: a zip in the Open Packaging Conventions, with NuGet's manifest.

Usage: pack.py VERSION TINY_DLL FOLDER NATIVE..
FOLDER gets Tiny.Engine.VERSION.nupkg; NATIVE are the libraries for linux-x64, as they are loaded.
"""

import pathlib
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
NAME = "Tiny.Engine"
WHEN = (2000, 1, 1, 0, 0, 0)  # of every file, so that the same files make the same package
CORE = "package/services/metadata/core-properties/tiny.psmdcp"
RELATIONSHIPS = "http://schemas.openxmlformats.org/package/2006"
ABOUT = "An embeddable deep-learning engine: lazy tensors, fused kernels, machine code; runs ONNX models."

NUSPEC = """<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd">
  <metadata>
    <id>{name}</id>
    <version>{version}</version>
    <authors>The tiny authors</authors>
    <license type="expression">MIT</license>
    <readme>README.md</readme>
    <requireLicenseAcceptance>false</requireLicenseAcceptance>
    <description>{about}</description>
    <tags>deep-learning onnx tensor inference</tags>
  </metadata>
</package>
"""

TYPES = """<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
  <Default Extension="psmdcp" ContentType="application/vnd.openxmlformats-package.core-properties+xml"/>
{defaults}
{overrides}
</Types>
"""

RELS = """<?xml version="1.0" encoding="utf-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
  <Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest" Target="/{name}.nuspec" Id="R1"/>
  <Relationship Type="{relationships}/relationships/metadata/core-properties" Target="/{core}" Id="R2"/>
</Relationships>
"""

PROPERTIES = """<?xml version="1.0" encoding="utf-8"?>
<coreProperties xmlns="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"
                xmlns:dc="http://purl.org/dc/elements/1.1/">
  <dc:creator>The tiny authors</dc:creator>
  <dc:description>{about}</dc:description>
  <dc:identifier>{name}</dc:identifier>
  <version>{version}</version>
</coreProperties>
"""


def types(paths):
    """The content types of the parts, by extension where a part has one."""
    suffixes = {pathlib.PurePosixPath(path).suffix[1:] for path in paths} - {"rels", "psmdcp", ""}
    # A library's name ends in a number or a word that is no type; NuGet wants one for each all the same.
    defaults = "\n".join(f'  <Default Extension="{suffix}" ContentType="application/octet"/>'
                         for suffix in sorted(suffixes))
    bare = [path for path in paths if not pathlib.PurePosixPath(path).suffix]
    overrides = "\n".join(f'  <Override PartName="/{path}" ContentType="application/octet"/>' for path in sorted(bare))
    return TYPES.format(defaults=defaults, overrides=overrides)


def main(version, assembly, folder, *native):
    parts = {f"lib/net461/{pathlib.Path(assembly).name}": pathlib.Path(assembly).read_bytes(),
             f"build/{NAME}.targets": (HERE / f"{NAME}.targets").read_bytes(),
             "LICENSE": (ROOT / "LICENSE").read_bytes(),
             "README.md": (ROOT / "README.md").read_bytes()}
    for path in map(pathlib.Path, native):
        parts[f"runtimes/linux-x64/native/{path.name}"] = path.read_bytes()
    words = {"name": NAME, "version": version, "about": ABOUT, "core": CORE, "relationships": RELATIONSHIPS}
    parts[f"{NAME}.nuspec"] = NUSPEC.format(**words).encode()
    parts[CORE] = PROPERTIES.format(**words).encode()
    parts["_rels/.rels"] = RELS.format(**words).encode()
    parts = {"[Content_Types].xml": types(parts).encode(), **parts}

    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / f"{NAME}.{version}.nupkg", "w", zipfile.ZIP_DEFLATED) as package:
        for path, content in parts.items():
            package.writestr(zipfile.ZipInfo(path, WHEN), content, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main(*sys.argv[1:])

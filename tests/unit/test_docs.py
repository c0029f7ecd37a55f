"""Every relative link in the project's own pages leads somewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("*.md", "docs/**/*.md", "examples/**/*.md", "images/**/*.md", "tests/**/*.md", ".github/**/*.md")
PAGES = sorted({page for place in PLACES for page in ROOT.glob(place)})
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(<?([^()\s>]+(?:\([^()]*\))?)>?(?:\s+\"[^\"]*\")?\)")
_IMAGE = re.compile(r"!\[[^\[\]]*\]\(<?([^()\s>]+)")
_NAMED = re.compile(r"^\[[^\]]+\]:\s+<?(\S+?)>?(?:\s|$)", re.MULTILINE)
_TAG = re.compile(r"(?:src|href)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)


def prose(page):
    """A page without its code, where brackets are no links."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def links(page):
    text = _CODE.sub("", prose(page))
    found = [*_LINK.findall(text), *_IMAGE.findall(text), *_NAMED.findall(text), *_TAG.findall(text)]
    return [link for link in found if not re.match(r"[a-z][a-z0-9+.-]*:", link)]


def anchors(page):
    """The names that GitHub gives a page's headings."""
    names = []
    for heading in _HEADING.findall(prose(page)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        names.append(name if name not in names else f"{name}-{names.count(name)}")
    return {*names, *re.findall(r"(?:id|name)=\"([^\"]+)\"", page.read_text(encoding="utf-8"))}


def faults(page, root=ROOT):
    for link in links(page):
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            yield f"{link}: no such file"
        elif not target.is_relative_to(root):
            yield f"{link}: leads out of the project"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield f"{link}: no such heading in {target.name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page):
    assert list(faults(page)) == []


def test_no_page_is_forgotten():
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    assert {ROOT / name for name in listed.stdout.split("\n") if name and (ROOT / name).exists()} <= set(PAGES)


def test_what_is_checked_is_what_a_reader_could_follow(tmp_path):
    (tmp_path / "other.md").write_text("# One `thing`, *two*\n## Again\n## Again\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n[a](other.md) [b](other.md#one-thing-two) [c](#here) [d](https://x.y/z) [![i](none.png)](#here)\n"
        "[e](gone.md) [f](other.md#gone) [g](other.md#again-1) `[h](gone.md)`\n```\n[k](gone.md)\n```\n[l]: gone2.md\n"
    )
    broken = {fault.split(":")[0] for fault in faults(page, tmp_path)}
    assert broken == {"none.png", "gone.md", "other.md#gone", "gone2.md"}

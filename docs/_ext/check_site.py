"""Check a built site: every link inside it has a page and an anchor, and every picture a file and an alt text.

python docs/_ext/check_site.py docs/_build/html
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Anchors, links and pictures of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = {"", "top"}
        self.links: list[str] = []
        self.faults: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One element."""
        found = dict(attrs)
        self.anchors |= {found[key] or "" for key in ("id", "name") if key in found}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"] or "")
        if tag == "img":
            self.links.append(found.get("src") or "")
            # The gallery's small pictures stand beside their titles: an empty text is right for them.
            if not (found.get("alt") or "").strip() and "_thumb." not in (found.get("src") or ""):
                self.faults.append(f"{found.get('src')} has no alt text")


def faults(folder: Path) -> list[str]:
    """What is wrong, a line each."""
    pages = {path.resolve(): Page(path) for path in folder.rglob("*.html")}
    found = []
    for path, page in pages.items():
        said = [*page.faults, *(text for link in page.links if (text := dead(path, link, pages)))]
        found += [f"{path.relative_to(folder.resolve())}: {text}" for text in dict.fromkeys(said)]
    return found


def dead(path: Path, link: str, pages: dict[Path, Page]) -> str | None:
    """What is wrong with a link of a page, or None."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return f"{link} leads nowhere"
    if target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return f"{link} has no such anchor"
    return None


if __name__ == "__main__":
    lines = faults(Path(sys.argv[1]))
    print("\n".join(lines) or "All links inside the site lead somewhere, and all pictures have an alt text.")
    sys.exit(1 if lines else 0)

"""Whether a thumb hits what a page offers: everything that is pressed has room enough."""

from __future__ import annotations

from playwright.sync_api import Page

# Links within text are as high as their line; a box to tick is hit by its label.
_SMALL = """() => [...document.querySelectorAll('button, select, summary, input, textarea, .button, nav li a, label.inline')]
  .filter((e) => e.type !== 'checkbox' && e.type !== 'radio' && !e.closest('.xterm') && e.checkVisibility())
  .map((e) => [e, e.getBoundingClientRect()])
  .filter(([e, box]) => box.width > 1 && (box.height < 43.5 || box.width < 43.5))
  .map(([e, box]) => `${Math.round(box.width)}x${Math.round(box.height)} ${e.outerHTML.slice(0, 120)}`)"""


def small(page: Page) -> list[str]:
    """What is too small to be hit."""
    return [f"small: {one}" for one in page.evaluate(_SMALL)]

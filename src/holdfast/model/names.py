"""Detects names that could be confused with others: control characters, look-alike letters, near copies. Pure."""

from __future__ import annotations

from .errors import HoldfastError
from .limits import NAME_MAX

# Letters of other alphabets that are drawn like a Latin one; a word made of nothing else reads as a Latin word.
_LOOKALIKES = frozenset("аеорсухіјѕԁһӏԛԝвкмнтгАВЕКМНОРСТУХІЈЅοανρτυικΑΒΕΖΗΙΚΜΝΟΡΤΥΧօսհոց")
_RELATED = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU")  # alphabets that share shapes with Latin
_SAME = str.maketrans({"0": "o", "1": "l", "i": "l", "|": "l", "5": "s"})
_RESERVED = ("op_", "hst_", "ses_", "grt_", "exe_", "req_")


def confusable(text: str) -> bool:
    """Whether a name is likely to be confused with another."""
    if text.isascii():
        return False
    import unicodedata

    if unicodedata.normalize("NFKC", text) != text:
        return True
    letters = [c for c in text if c.isalpha()]
    scripts = {unicodedata.name(c, "?").split()[0] for c in letters}
    related = scripts.intersection(_RELATED)
    if related and ("LATIN" in scripts or len(related) > 1):
        return True
    return bool(related) and all(c in _LOOKALIKES for c in letters)


def skeleton(name: str) -> str:
    """A key that is equal for names that look alike: two operators never share one."""
    return name.lower().translate(_SAME).replace("rn", "m").replace("vv", "w")


def check_operator_name(name: str) -> str:
    """Return an operator's name if it is valid: plain ASCII only, because it decides who is trusted."""
    if not name or len(name) > NAME_MAX:
        raise refused("an operator's name has 1 to 64 characters", "choose another name")
    if not name.isascii() or not all(c.isalnum() or c in "._-+" for c in name) or not name[0].isalnum():
        raise refused(
            f"{visible(name)} cannot be an operator's name: it could be confused with another",
            "ASCII letters, digits and . _ - + only, beginning with a letter or a digit",
        )
    if name.startswith(_RESERVED):
        raise refused(f"an operator's name cannot look like an id ({name[:12]})", "choose another name")
    return name


def check_glob(glob: str) -> str:
    """Return a grant's pattern of session names or ids if it is valid."""
    if not glob or len(glob) > 2 * NAME_MAX:
        raise refused("a session pattern has 1 to 128 characters", "write a name, an id, or a pattern such as web-*")
    if not all(c.isalnum() or c in "._-+@*?[]!" for c in glob) or confusable(glob):
        raise refused(
            f"{visible(glob)} cannot be a session pattern: it could be confused with another",
            "letters of one alphabet, digits, . _ - + @ and the wildcards * ? [ ]",
        )
    return glob


def visible(text: str) -> str:
    """An untrusted name made safe for a message: it cannot move a cursor or imitate other letters."""
    return ascii(text[:NAME_MAX])


def refused(message: str, hint: str = "") -> HoldfastError:
    return HoldfastError("not_allowed", message, hint)

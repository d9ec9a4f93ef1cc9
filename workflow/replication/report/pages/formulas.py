"""Formulas in pages: TeX in texts becomes MathML, which browsers draw without scripts."""

import html
import re
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup, escape

from replication.base.errors import InputError, quoted

#: A formula in a text for readers: \(W^2\).
_FORMULA = re.compile(r"\\\((.+?)\\\)", re.DOTALL)
_MATHML = "http://www.w3.org/1998/Math/MathML"
#: HTML needs no name space.
_NAMESPACE = f' xmlns="{_MATHML}"'
#: Elements that do no more than to show something, and attributes that do more.
_TAG, _UNSAFE = re.compile("m(?!ath|action)[a-z]+"), re.compile("on.*|href|src|style|.*[:}].*")


def mathml(tex: str, *, is_block: bool = False) -> Markup:
    """Return a formula as MathML; InputError: it is no TeX that has a MathML form."""
    # Few pages have formulas.
    from latex2mathml.converter import convert

    try:
        formula = convert(tex.strip(), display="block" if is_block else "inline")
        _check(formula)
    except Exception as error:
        # The library's errors have no common type.
        reason = str(error) or type(error).__name__
        raise InputError(f"formula {quoted(tex)}: cannot be read ({reason}); correct it") from None
    return Markup(formula.replace(_NAMESPACE, ""))


def _check(formula: str) -> None:
    """Raise ValueError unless there is only MathML: the library does not escape words in TeX."""
    _, *inner = ElementTree.fromstring(formula).iter()
    for element in inner:
        tag = element.tag.removeprefix(f"{{{_MATHML}}}")
        is_unsafe = any(_UNSAFE.fullmatch(attribute) for attribute in element.attrib)
        if is_unsafe or not _TAG.fullmatch(tag):
            raise ValueError(f"contains <{tag}>")


def with_formulas(value: Any) -> Any:
    r"""Return a value of a template with each \(formula\) in a text as MathML."""
    if not isinstance(value, str) or r"\(" not in value:
        return value
    return Markup(_FORMULA.sub(lambda tex: mathml(html.unescape(tex[1])), str(escape(value))))

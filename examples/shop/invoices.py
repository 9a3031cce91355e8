"""Invoices as PDF files.

The payload is a dataclass: what does not fit it fails for good before the handler is called.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import cache
from io import BytesIO
from pathlib import Path

import pymupdf_fonts  # type: ignore[import-untyped]
from fontTools.ttLib import TTFont  # type: ignore[import-untyped]
from fpdf import FPDF

import pgq
from examples.shop.app import app
from examples.shop.files import outbox, whole

FONT = "FiraGO"
"""Has Latin, Greek, Cyrillic, Georgian, Arabic, Hebrew, Devanagari and Thai, but no CJK."""


@dataclass(frozen=True, slots=True)
class Line:
    """One position of an invoice."""

    title: str
    quantity: int
    price: str
    """A decimal number as text, since JSON has no exact one."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d{1,9}(\.\d{1,3})?", self.price, re.ASCII):
            raise ValueError(f"{self.price!r} is not a price")

    @property
    def amount(self) -> Decimal:
        return self.quantity * Decimal(self.price)


def total(lines: Iterable[Line]) -> Decimal:
    """What these lines come to."""
    return sum((line.amount for line in lines), Decimal(0))


@dataclass(frozen=True, slots=True)
class Invoice:
    """What is charged to whom."""

    number: str
    name: str
    address: list[str]
    currency: str
    lines: list[Line]
    latin_name: str | None = None
    """For a name in a script that the font lacks."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Z0-9][A-Z0-9-]{0,31}", self.number):
            raise ValueError(f"{self.number!r} is not an invoice number")

    @property
    def total(self) -> Decimal:
        return total(self.lines)


@app.job("make_invoice", queue="invoices", retry=timedelta(seconds=1))
def make_invoice(invoice: Invoice) -> dict[str, str]:
    """Write the invoice to the outbox; a second attempt replaces what the first one wrote."""
    target = outbox() / "invoices" / f"{invoice.number}.pdf"
    document = render(invoice)
    with whole(target) as file:
        file.write(document)
    return {"file": str(target), "total": f"{invoice.total:f}", "currency": invoice.currency}


def render(invoice: Invoice) -> bytes:
    """The invoice as a PDF document."""
    name = printable_name(invoice)
    pdf = FPDF()
    pdf.set_title(f"Invoice {invoice.number}")
    pdf.add_font(FONT, fname=font_file())
    pdf.set_text_shaping(use_shaping_engine=True)  # joins Arabic letters, stacks Devanagari signs
    pdf.add_page()
    pdf.set_font(FONT, size=20)
    pdf.cell(text=f"Invoice {invoice.number}", new_x="LMARGIN", new_y="NEXT")
    pdf.set_font(FONT, size=11)
    pdf.multi_cell(w=0, h=6, text="\n".join([name, *invoice.address, ""]), align="L")
    pdf.ln()
    with pdf.table(
        col_widths=(6, 1, 2, 2),
        text_align=("LEFT", "RIGHT", "RIGHT", "RIGHT"),
        first_row_as_headings=False,
        borders_layout="HORIZONTAL_LINES",
        line_height=8,
    ) as table:
        table.row(["", "", "each", invoice.currency])
        for line in invoice.lines:
            price = f"{Decimal(line.price):,f}"
            table.row([line.title, f"{line.quantity}", price, f"{line.amount:,f}"])
        table.row(["Total", "", "", f"{invoice.total:,f}"])
    return bytes(pdf.output())


def printable_name(invoice: Invoice) -> str:
    """The customer's name as the font can show it; empty boxes on an invoice fail it for good."""
    name = invoice.name
    if invoice.latin_name and not glyphs().issuperset(name):
        name = invoice.latin_name
    titles = [line.title for line in invoice.lines]
    for text in (name, *invoice.address, *titles, invoice.currency):
        for character in text:
            if character not in glyphs():
                raise pgq.Fail(f"the font has no {character!r} to print {text!r}")
    return name


@cache
def glyphs() -> frozenset[str]:
    """The characters that the font can show."""
    with TTFont(BytesIO(pymupdf_fonts.myfont("figo"))) as font:
        characters = map(chr, font.getBestCmap() or ())
        # The font has an empty glyph for some control characters.
        return frozenset(sign for sign in characters if unicodedata.category(sign) != "Cc")


def font_file() -> Path:
    """The font as a file, which the package does not have it as."""
    path = outbox() / "fonts" / f"{FONT}.ttf"
    if not path.exists():
        with whole(path) as file:
            file.write(pymupdf_fonts.myfont("figo"))
    return path

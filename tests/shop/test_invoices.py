"""Invoices say who owes what, in the customer's own letters where the font has them."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pypdf
import pytest

import pgq
from examples.shop import app
from examples.shop.invoices import Invoice, make_invoice
from pgq.registry.binding import Misfit


def payload(**changes: object) -> dict[str, Any]:
    lines = [
        {"title": "Enamel kettle", "quantity": 3, "price": "64.90"},
        {"title": "Plant pot", "quantity": 12, "price": "110.80"},
    ]
    plain = {"number": "S-1", "name": "Zoë", "address": ["Leipzig"], "currency": "EUR"}
    return plain | {"lines": lines} | changes


def made(**changes: object) -> Invoice:
    arguments = app.handlers["make_invoice"].binding.arguments(payload(**changes))
    invoice = arguments["invoice"]
    assert isinstance(invoice, Invoice)
    return invoice


def text_of(file: Path) -> str:
    """The text of a PDF without its spaces, which depend on how the letters are set."""
    return "".join("".join(page.extract_text() for page in pypdf.PdfReader(file).pages).split())


def test_an_invoice_has_its_number_lines_and_total(outbox: Path) -> None:
    result = make_invoice(made())

    assert result["total"] == "1524.30"
    text = text_of(outbox / "invoices" / "S-1.pdf")
    assert text == (
        "InvoiceS-1ZoëLeipzigeachEUREnamelkettle364.90194.70Plantpot12110.801,329.60Total1,524.30"
    )


@pytest.mark.parametrize(
    "name",
    [
        "Łukasz Żółkiewski",
        "Þórdís Ævarsdóttir",
        "Nguyễn Thị Hương",
        "Ольга Їжакевич",
        "Γιώργος Παπαδόπουλος",
        "გიორგი ბერიძე",
        "अनन्या शर्मा",
        "สมชาย ใจดี",
        "محمد العلي",
        "דוד כהן",
    ],
)
def test_a_name_is_written_in_its_own_letters(outbox: Path, name: str) -> None:
    make_invoice(made(name=name))

    assert name.replace(" ", "") in text_of(outbox / "invoices" / "S-1.pdf")


def test_a_name_that_the_font_lacks_is_written_in_latin_letters(outbox: Path) -> None:
    make_invoice(made(name="山田 太郎", latin_name="Tarō Yamada"))

    assert "TarōYamada" in text_of(outbox / "invoices" / "S-1.pdf")


def test_letters_that_cannot_be_printed_fail_for_good(outbox: Path) -> None:
    with pytest.raises(pgq.Fail, match="the font has no '山'"):
        make_invoice(made(name="山田 太郎"))
    with pytest.raises(pgq.Fail, match=r"the font has no '\\r'"):
        make_invoice(made(address=["Leipzig\r\nPAID"]))

    assert not (outbox / "invoices").exists()


def test_an_invoice_without_cents_has_none(outbox: Path) -> None:
    make_invoice(made(lines=[{"title": "Pot", "quantity": 2, "price": "10700"}]))

    assert text_of(outbox / "invoices" / "S-1.pdf").endswith("Total21,400")


def test_a_long_invoice_goes_on_on_the_next_page(outbox: Path) -> None:
    many = [{"title": f"Pot {n}", "quantity": 1, "price": "1.00"} for n in range(90)]

    make_invoice(made(lines=many))

    file = outbox / "invoices" / "S-1.pdf"
    assert len(pypdf.PdfReader(file).pages) > 1
    assert text_of(file).endswith("Total90.00")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"number": "../../etc/passwd"}, "is not an invoice number"),
        ({"number": "S-1\n"}, "is not an invoice number"),
        ({"number": 7}, "number: must be a string"),
        ({"lines": ["kettle"]}, "must be an object"),
        ({"lines": [{"title": "Pot", "quantity": 1}]}, "lacks 'price'"),
        ({"lines": [{"title": "Pot", "quantity": 1, "price": "NaN"}]}, "is not a price"),
        ({"lines": [{"title": "Pot", "quantity": 1, "price": "1e99"}]}, "is not a price"),
        ({"lines": [{"title": "Pot", "quantity": 1, "price": 1.5}]}, "price: must be a string"),
        (
            {"lines": [{"title": "Pot", "quantity": "2", "price": "1"}]},
            "quantity: must be a whole number",
        ),
        ({"items": []}, "takes no 'items'"),
    ],
)
def test_a_payload_that_is_no_invoice_does_not_fit(changes: dict[str, object], reason: str) -> None:
    with pytest.raises(Misfit, match=reason):
        made(**changes)


def test_a_total_is_exact() -> None:
    lines = [{"title": "Pot", "quantity": 1, "price": "0.10"}] * 3

    assert made(lines=lines).total == Decimal("0.30")

"""The comparable forms of a quantity: its own in base units, and what it equals by molar mass, strength and so on.

A form is (dimension, low, high, unit, half, way): `half` is half a unit of the last printed digit, in base units; `way`
says how it came about.
"""

from __future__ import annotations

from typing import NamedTuple

from clinsafe.mitigations.numbers.lexicon import Subject
from clinsafe.mitigations.numbers.pack import Drug
from clinsafe.mitigations.numbers.shapes import Quantity
from clinsafe.mitigations.numbers.units import Measure

WRITTEN, DERIVED, BY_FACTOR, ASSUMED, ONLY_AGREES = 0, 1, 2, 3, 9
BARE, SHARE = "number", "share"


class Form(NamedTuple):
    """One comparable form."""

    dim: str
    low: float
    high: float
    unit: str
    half: float
    way: int


def forms_of(quantity: Quantity, subject: Subject | None, default: Measure | None) -> list[Form]:
    """All forms, the written one first.

    Args:
        default: the unit that a bare number of this subject means.
    """
    if quantity.kind in ("share", "count", "part"):
        part = 100.0 / quantity.second
        # a fraction in words is rough, and shares of patients are another hazard: it never conflicts
        way = ONLY_AGREES if quantity.kind == "part" else DERIVED
        return [Form("%", quantity.low * part, quantity.high * part, SHARE, _rough(quantity), way)]
    if quantity.kind == "ratio":
        return _ratio(quantity)
    measure = quantity.measure
    if measure is None:
        forms = [Form(BARE, quantity.low, quantity.high, "", 0.5 * 10.0**-quantity.decimals, WRITTEN)]
        if subject and subject.analyte and subject.analyte.fraction and 0 < quantity.low <= 1:
            half = 50.0 * 10.0**-quantity.decimals
            return [Form("%", quantity.low * 100, quantity.high * 100, "fraction", half, DERIVED), *forms]
        if default:
            scale = subject.analyte.scale if subject and subject.analyte else 1.0
            forms.append(_scaled(quantity, default, ASSUMED, scale))
        return forms
    forms = [_scaled(quantity, measure, WRITTEN, quantity.times)]
    if quantity.strength:
        one = _scaled(quantity, measure, ONLY_AGREES, 1.0)
        forms.append(one._replace(dim=f"strength {one.dim}"))
    if measure.volume and not measure.hours:
        whole = _scaled(quantity, measure, ONLY_AGREES, quantity.times * measure.volume)
        forms.append(whole._replace(dim=measure.dim.removesuffix("/volume")))
    if measure.hours >= 24:
        own = _scaled(quantity, measure, ONLY_AGREES, quantity.times)
        forms.append(
            own._replace(dim=measure.dim, low=own.low * measure.hours, high=own.high * measure.hours)
        )
    return _aliases(forms, subject)


def _rough(quantity: Quantity) -> float:
    """Per cent points that a share may be off: "one in three" and "18 per 100" are rounded, "12 of 49" is not."""
    if quantity.kind != "share":
        return 0.0
    return (5.0 if quantity.low == 1 and quantity.second < 100 else 50.0) / quantity.second


def _scaled(quantity: Quantity, measure: Measure, way: int, times: float) -> Form:
    hours = measure.hours or 1.0
    dim = f"{measure.dim}/time" if measure.hours else measure.dim
    low = (quantity.low * measure.factor * times + measure.offset) / hours
    high = (quantity.high * measure.factor * times + measure.offset) / hours
    half = 0.5 * 10.0**-quantity.decimals * measure.factor * times / hours
    return Form(dim, low, high, measure.show, half, way)


def _ratio(quantity: Quantity) -> list[Form]:
    if quantity.second <= 0:
        return []
    forms = [Form("ratio", quantity.low / quantity.second, quantity.low / quantity.second, ":", 0.0, WRITTEN)]
    if quantity.low == 1 and quantity.second >= 100:
        forms.append(
            Form("mass/volume", 1000 / quantity.second, 1000 / quantity.second, "ratio", 0.0, DERIVED)
        )
    return forms


def _aliases(forms: list[Form], subject: Subject | None) -> list[Form]:
    own = forms[0]
    if subject is None or subject.drug:
        if own.dim == "%":
            forms.append(
                own._replace(
                    dim="mass/volume",
                    low=own.low * 10,
                    high=own.high * 10,
                    half=own.half * 10,
                    way=DERIVED if subject else ONLY_AGREES,
                )
            )
        if subject is None or subject.drug is None:
            return forms
        return forms + _of_drug(own, subject.drug)
    analyte = subject.analyte
    if analyte is None:
        return forms
    head, _, tail = own.dim.partition("/")
    rest = f"/{tail}" if tail else ""
    if analyte.affine and own.dim == "%":
        forms.append(
            Form(
                "mole/mole",
                (own.low + analyte.affine.shift) * analyte.affine.scale,
                (own.high + analyte.affine.shift) * analyte.affine.scale,
                "",
                own.half * analyte.affine.scale,
                BY_FACTOR,
            )
        )
    if head == "mass" and analyte.molar and tail:
        forms += [
            _times(own, f"mole{rest}", 1 / molar) for molar in (analyte.molar, analyte.molar_too) if molar
        ]
    if head == "eq" and analyte.valence:
        forms.append(_times(own, f"mole{rest}", 1 / analyte.valence))
    if own.dim == "mass/mole" and analyte.molar_ratio:
        forms.append(_times(own, "mass/mass", 1 / analyte.molar_ratio))
    return forms


def _of_drug(own: Form, drug: Drug) -> list[Form]:
    head, _, tail = own.dim.partition("/")
    rest = f"/{tail}" if tail else ""
    found = []
    if head == "mass" and drug.iu_per_mg:
        found.append(_times(own, f"units{rest}", drug.iu_per_mg))
    if head == "mole" and drug.mg_per_mmol:
        found.append(_times(own, f"mass{rest}", drug.mg_per_mmol))
    if head == "mass" and drug.molar and "volume" in rest:
        found.append(_times(own, f"mole{rest}", 1 / drug.molar))
    if head == "eq" and drug.valence:
        found.append(_times(own, f"mole{rest}", 1 / drug.valence))
    return found


def _times(own: Form, dim: str, factor: float) -> Form:
    return Form(dim, own.low * factor, own.high * factor, own.unit, own.half * factor, BY_FACTOR)


def product(amount: Form, strength: Form) -> Form | None:
    """12 mL of 100 units/mL: 1,200 units. None if the two do not multiply."""
    if amount.dim == "volume" and strength.dim in ("mass/volume", "units/volume", "mole/volume"):
        dim = strength.dim.removesuffix("/volume")
    elif amount.dim == "volume/time" and strength.dim in ("mass/volume", "units/volume"):
        dim = strength.dim.removesuffix("/volume") + "/time"
    elif amount.dim in (
        "tablet",
        "puff",
        "patch",
        "sachet",
        "ampoule",
        "suppository",
        "drop",
    ) and strength.dim in ("mass", "units"):
        dim = strength.dim
    else:
        return None
    return Form(dim, amount.low * strength.low, amount.high * strength.high, "", 0.0, DERIVED)

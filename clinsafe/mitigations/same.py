"""Everyday words beside clinical ones, for what a question asks; wider than the synonyms of the filters.

The filters must not take two words for one where a contradiction hangs on the difference. Here only the *topic* is
matched, so that a sentence is found; what it says of the topic is read afterwards. Never two drugs, organs or sides.
"""

from __future__ import annotations

from functools import lru_cache

from clinsafe.text.tokens import stem_of
from clinsafe.text.vocabulary import load_vocabulary

_GROUPS = """
fracture: fracture break broken broke
crush: crush grind ground pulverise chew powder
vaccine: vaccine vaccination jab immunise immunisation inoculation booster
smoke: smoke smoker smoking cigarette tobacco
breastfeeding: breastfeed breastfeeding lactation lactating
spread: spread metastasis metastatic disseminate
excise: excise resect excision removal
cancer: cancer malignancy malignant carcinoma tumour neoplasm
pain: pain sore painful tender tenderness ache hurt discomfort
refrigerator: refrigerator fridge
start: start begin commence initiate onset
suicide: suicide suicidal
rash: rash eruption exanthem
narrow: narrow narrowed narrowing stenosis stenosed restenosis stricture
clot: clot thrombus thrombosis embolus embolism
swell: swell swelling swollen oedema
weigh: weigh weight heavy heaviness
fluid: fluid drink intake
dizzy: dizzy dizziness giddy giddiness lightheaded
sick: sick nausea nauseous queasy
walk: walk mobilise ambulate gait
cough: cough coughing
enlarge: enlarge enlarged enlargement
abnormal: abnormal abnormality deranged
kidney: kidney renal nephropathy
shingles: shingles zoster
sunlight: sunlight sun photosensitivity ultraviolet
deafness: deaf deafness
blind: blind blindness
operation: operation operate surgery surgical procedure
ventilate: ventilate ventilator ventilation ventilated intubate intubated
oxygen: oxygen o2
confused: confused confusion delirious delirium
relative: relative family
consent: consent agree permission
pregnancy: pregnancy hcg bhcg
anticoagulant: anticoagulant anticoagulation anticoagulated
immunosuppressed: immunosuppressed immunosuppression immunosuppressive immunosuppressant immunocompromised
dehydrated: dehydrated dehydration
obese: obese obesity
anaemia: anaemia anaemic
infect: infect infection infected infective
ulcer: ulcer ulcerated ulceration
perforate: perforate perforation perforated
wean: wean weaned
"""
_PHRASES = {
    "suicide": ("end life", "kill", "take life", "harm self", "self harm"),
    "alopecia": ("hair fall", "hair loss", "hair thin"),
    "breastfeeding": ("breast feed", "nurse mother", "nurse woman"),
    "recur": ("come back", "came back", "return"),
    "smoke": ("cigarett",),
    "photosensitivity": ("sensitive sun", "sensitive sunlight"),
}


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    vocabulary = load_vocabulary()
    names: dict[str, str] = {}
    for line in _GROUPS.split("\n"):
        name, _, words = line.partition(":")
        for word in words.split():
            for key in (stem_of(word), vocabulary.key(word).lstrip("=")):
                if key:
                    names.setdefault(key, stem_of(name))
    return names


@lru_cache(maxsize=1)
def _phrases() -> tuple[tuple[frozenset[str], str], ...]:
    return tuple(
        (frozenset(same(stem_of(word)) for word in phrase.split()), stem_of(name))
        for name, phrases in _PHRASES.items()
        for phrase in phrases
    )


def same(key: str) -> str:
    """The one name of all keys that ask for the same thing; a key of no group stays."""
    return _names().get(key, key)


def widened(keys: frozenset[str]) -> frozenset[str]:
    """The keys, and the names of things that several of them spell out ("end her life")."""
    more = {name for phrase, name in _phrases() if phrase <= keys}
    return keys | more if more else keys


def narrowed(keys: frozenset[str]) -> frozenset[str]:
    """The keys of a question with such phrases replaced by their names."""
    found = [(phrase, name) for phrase, name in _phrases() if phrase <= keys]
    gone = frozenset().union(*(phrase for phrase, _ in found)) if found else frozenset()
    return (keys - gone) | {name for _, name in found} if found else keys

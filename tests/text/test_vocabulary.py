"""The two files of words: well formed, true to the text's positions, and read as a clinician reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.content import Content
from clinsafe.errors import ContentError
from clinsafe.text import Reader
from clinsafe.text.tokens import FUNCTION, TOKEN, stem_of
from clinsafe.text.vocabulary import Abbreviation, Abbreviations, Synonyms, load_vocabulary

ABBREVIATIONS = Content().yaml("mitigations/abbreviations.yaml", Abbreviations).abbreviations
SYNONYMS = Content().yaml("mitigations/synonyms.yaml", Synonyms)
VOCABULARY = load_vocabulary()
READER = Reader(model="")
SPELLED = [entry for entry in ABBREVIATIONS if entry.long]
# Words with one stem that only rename it: the name is what the packs use. Empty: none is needed so far.
ONE_STEM: frozenset[str] = frozenset()


def shape(short: str) -> tuple[str, ...]:
    return tuple(TOKEN.findall(short))


def keys(text: str) -> set[str]:
    """Keys of a text as it is read."""
    return {token.key for token in VOCABULARY.tokens(text, 0, len(text)) if token.key}


def plain(text: str) -> set[str]:
    """Keys of the words as they stand, nothing spelled out."""
    return {key for word in TOKEN.findall(text) if (key := VOCABULARY.key(word.lower()))}


def read(text: str) -> str:
    return " ".join(token.text for sentence in READER.read(text).sentences for token in sentence.tokens)


# The files themselves


def test_no_short_form_is_given_twice():
    seen: set[str] = set()
    for entry in ABBREVIATIONS:
        assert entry.short not in seen, entry.short
        seen.add(entry.short)
    loose = {entry.short for entry in ABBREVIATIONS if entry.any_case}
    exact = {entry.short.lower() for entry in ABBREVIATIONS if not entry.any_case}
    assert not loose & exact


def test_an_entry_either_has_one_meaning_or_lists_several():
    for entry in ABBREVIATIONS:
        assert bool(entry.long) != bool(entry.ambiguous), entry.short
        assert len(entry.ambiguous) != 1, entry.short
        assert not entry.any_case or entry.short == entry.short.lower(), entry.short


def test_an_abbreviation_is_found_and_ends_there():
    """What it is read as has the keys of `long`, and `long` itself would not be read as something else."""
    assert [entry.short for entry in SPELLED if keys(entry.short) != plain(entry.long)] == []
    assert [entry.short for entry in SPELLED if keys(entry.long) != plain(entry.long)] == []


def test_a_phrase_reads_as_its_canonical_words_and_ends_there():
    """No chains and no cycles: the canonical words are not rewritten in their turn."""
    phrases = SYNONYMS.phrases.items()
    assert [phrase for phrase, meaning in phrases if keys(phrase) != plain(meaning)] == []
    assert [phrase for phrase, meaning in phrases if keys(meaning) != plain(meaning)] == []


def test_no_short_entry_hides_a_longer_one():
    """Case-sensitive entries are tried first: `w/` in one table would hide `w/o` in the other."""
    exact = [shape(entry.short) for entry in SPELLED if not entry.any_case]
    loose = [shape(entry.short.lower()) for entry in SPELLED if entry.any_case]
    loose += [shape(phrase.lower()) for phrase in SYNONYMS.phrases]
    hidden = [
        (short, longer)
        for short in exact
        for longer in loose
        if len(longer) > len(short) and tuple(map(str.lower, short)) == longer[: len(short)]
    ]
    assert hidden == []


def test_a_group_holds_single_words_and_no_function_word():
    """A word of several tokens never matches; a function word would give its key to all of them."""
    words = {word.lower() for group in SYNONYMS.groups.values() for word in group}
    assert [word for word in words if len(TOKEN.findall(word)) != 1] == []
    assert words & FUNCTION == set()


def test_a_group_joins_two_stems_at_least():
    """One stem needs no group, and to name it may rename a look-alike: testes has the stem of test."""
    groups = SYNONYMS.groups.items()
    single = {name for name, group in groups if len({stem_of(word.lower()) for word in group}) < 2}
    assert single <= ONE_STEM


def test_no_stem_is_in_two_groups():
    owner: dict[str, str] = {}
    for name, group in SYNONYMS.groups.items():
        for word in group:
            assert owner.setdefault(stem_of(word.lower()), name) == name, word


# Pairs that must never be one thing: opposite sign, other organ, other severity, other drug, look-alikes


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("hypertension", "hypotension"),
        ("hyperkalaemia", "hypokalaemia"),
        ("high potassium", "low potassium"),
        ("tachycardia", "bradycardia"),
        ("increase", "decrease"),
        ("start", "stop"),
        ("improved", "worsened"),
        ("positive", "negative"),
        ("-ve", "+ve"),
        ("renal", "hepatic"),
        ("left", "right"),
        ("mother", "father"),
        ("mild", "severe"),
        ("ileum", "ilium"),
        ("prednisone", "prednisolone"),
        ("hydralazine", "hydroxyzine"),
        ("adrenaline", "noradrenaline"),
        ("glargine", "aspart"),
        ("morphine", "hydromorphone"),
        ("vaccine", "immune"),
        ("embolism", "thrombosis"),
        ("T1DM", "T2DM"),
        ("STEMI", "NSTEMI"),
        ("haemodialysis", "dialysis"),
        ("upper limb", "lower limb"),
        ("hypothyroidism", "hyperthyroidism"),
        ("BD", "TDS"),
        ("QD", "QOD"),
    ],
)
def test_different_things_stay_different(one, other):
    assert keys(one) != keys(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("heart attack", "MI"),
        ("SOB", "breathlessness"),
        ("short of breath", "dyspnoeic"),
        ("kidney failure", "renal failure"),
        ("bled", "haemorrhage"),
        ("Tylenol", "paracetamol"),
        ("frusemide", "Lasix"),
        ("EKG", "electrocardiogram"),
        ("CXR", "chest x-ray"),
        ("CBC", "full blood count"),
        ("low potassium", "hypokalemia"),
        ("NBM", "nothing by mouth"),
        ("GERD", "gastro-oesophageal reflux disease"),
        ("TMP/SMX", "Bactrim"),
        ("NSAIDs", "non-steroidal anti-inflammatory drugs"),
        ("swollen", "oedema"),
        ("died", "death"),
    ],
)
def test_two_names_of_one_thing_align(one, other):
    assert keys(one) == keys(other)


@pytest.mark.parametrize(
    "word", ["fall", "discharge", "positive", "culture", "fit", "fast", "lower", "up", "drop"]
)
def test_everyday_words_with_two_meanings_are_in_no_group(word):
    assert not VOCABULARY.key(word).startswith("=")


# What a clinician reads


@pytest.mark.parametrize(
    ("note", "meaning"),
    [
        ("65 y/o c/o SOB", "65 year old complains of dyspnoea"),
        ("h/o MI, s/p CABG", "history of myocardial infarction , status post coronary artery bypass graft"),
        ("NKDA. PCN allergy?", "no known drug allergies . penicillin allergy ?"),
        ("CXR w/o effusion", "chest radiograph without effusion"),
        ("on ACEi 5 mg OD", "on ACE inhibitor 5 mg once daily"),
        ("stage IV disease, IV fluids", "stage IV disease , intravenous fluids"),
        ("HIV -ve", "HIV negative"),
        ("no LOC, denies CP", "no loss of consciousness , denies chest pain"),
        ("1% w/w cream", "1 % w / w cream"),
        ("5-FU and MTX", "fluorouracil and methotrexate"),
        ("PE: chest clear. CTPA: PE", "PE : chest clear . CT pulmonary angiogram : pulmonary embolism"),
        ("r/o PE; MI r/o'd", "rule out pulmonary embolism ; myocardial infarction ruled out"),
        ("CVA tenderness", "costovertebral angle tenderness"),
        ("d/c home", "discharge home"),
        ("abdomen NTND", "abdomen not tender and not distended"),
        ("a bid to stop", "a bid to stop"),
        ("low sodium diet", "low sodium diet"),
        ("98% on RA", "98 % on room air"),
    ],
)
def test_notes_are_spelled_out_as_a_clinician_reads_them(note, meaning):
    assert read(note) == meaning


def test_an_ambiguous_abbreviation_is_left_as_written():
    for entry in ABBREVIATIONS:
        words = ["noted", *shape(entry.short), "yesterday"]
        assert entry.long or read(f"noted {entry.short} yesterday").split() == words


@pytest.mark.parametrize(
    "word", ["af", "mi", "pe", "all", "sob", "hit", "cap", "Mets", "Or", "US", "IT", "AS"]
)
def test_words_of_plain_english_are_no_abbreviations(word):
    assert read(word) == word


@pytest.mark.parametrize("word", ["AFTER", "MIld", "PEN", "ward/clinic", "who/or", "c/over", "anti-AFP"])
def test_an_abbreviation_is_never_found_inside_a_word(word):
    assert read(word) == " ".join(TOKEN.findall(word))


# Positions


@given(
    entry=st.sampled_from(SPELLED),
    before=st.sampled_from(["", "seen ", "½ dose, ", "isn’t 10⁹ \u200b ", "Plan:\n- ", "Given. "]),
    after=st.sampled_from(["", " today", ".", ", improved", "\nNext line", " (…)"]),
)
def test_a_spelled_out_abbreviation_points_at_itself(entry, before, after):
    text = before + entry.short + after
    place = (len(before), len(before) + len(entry.short))
    reading = READER.read(text)
    tokens = [token for sentence in reading.sentences for token in sentence.tokens]
    words = list(TOKEN.findall(entry.long))
    starts = [i for i in range(len(tokens)) if [token.text for token in tokens[i : i + len(words)]] == words]
    spans = [reading.token_span(tokens[i : i + len(words)]) for i in starts]
    assert place in [(span.start, span.end) for span in spans]
    assert all(
        reading.token_span([token]) == span
        for i, span in zip(starts, spans, strict=True)
        for token in tokens[i : i + len(words)]
        if (span.start, span.end) == place
    )


# Faults and overlays


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        (
            "abbreviations:\n  - {short: AF, long: atrial fibrillation}\n  - {long: nothing}\n",
            3,
            "abbreviations.1.short",
        ),
        ("abbreviations:\n  - {short: '', long: x}\n", 2, "abbreviations.0.short"),
        ("abbreviations:\n  - {short: AF, lang: x}\n", 2, "abbreviations.0.lang"),
        (
            "abbreviations:\n  - {short: AF,\n     long: x, any_case: perhaps}\n",
            3,
            "abbreviations.0.any_case",
        ),
        ("abbreviations: none\n", 1, "abbreviations"),
    ],
)
def test_a_broken_entry_is_named_by_file_line_and_field(overlay, text, line, field):
    root = overlay("mitigations/abbreviations.yaml", lambda _: text)
    with pytest.raises(ContentError) as caught:
        load_vocabulary(Content(root))
    assert (caught.value.line, caught.value.field) == (line, field)
    assert caught.value.path == root / "mitigations/abbreviations.yaml"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("phrases: {}\ngroups: {fever: fever}\n", "groups.fever"),
        ("phrases: {}\n", "groups"),
        ("phrases: {a: b}\ngroups: {}\nextra: 1\n", "extra"),
    ],
)
def test_a_broken_synonym_file_is_refused(overlay, text, field):
    root = overlay("mitigations/synonyms.yaml", lambda _: text)
    with pytest.raises(ContentError) as caught:
        load_vocabulary(Content(root))
    assert caught.value.field == field


def test_an_overlay_replaces_the_whole_file(overlay):
    root = overlay(
        "mitigations/abbreviations.yaml", lambda _: "abbreviations:\n  - {short: ZZ, long: zigzag}\n"
    )
    reader = Reader(Content(root), model="")
    words = [token.text for token in reader.read("ZZ and MI, heart attack").sentences[0].tokens]
    assert words == ["zigzag", "and", "MI", ",", "myocardial", "infarction"]


def test_both_files_are_in_the_evidence():
    content = Content()
    load_vocabulary(content)
    assert set(content.hashes) == {"mitigations/abbreviations.yaml", "mitigations/synonyms.yaml"}


def test_an_entry_needs_only_its_short_form():
    assert Abbreviation(short="XY").long == ""


TWICE = "abbreviations:\n  - {short: AF, long: a b}\n  - {short: AF, long: c d}\n"
BOTH = "phrases: {}\ngroups:\n  x: [bleed]\n  y: [bleeding]\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("abbreviations", TWICE, r"yaml:3: short: 'AF' is given twice"),
        ("synonyms", "phrases: {}\ngroups:\n  x: [bleed, the]\n", r"yaml:3: groups\.x: 'the' cannot align"),
        (
            "synonyms",
            "phrases: {}\ngroups:\n  x: [heart attack]\n",
            r"yaml:3: groups\.x: 'heart attack' cannot align",
        ),
        ("synonyms", BOTH, r"yaml:4: groups\.y: 'bleeding' is in group 'x'"),
    ],
)
def test_a_word_that_would_silently_do_nothing_is_refused(tmp_path, name, text, said):
    (tmp_path / "mitigations").mkdir()
    (tmp_path / "mitigations" / f"{name}.yaml").write_text(text)
    with pytest.raises(ContentError, match=said):
        load_vocabulary(Content(tmp_path))

"""Claims with their contexts and labels, written for these tests: four a hazard and what lies outside the hazards."""

from __future__ import annotations

from typing import Literal, NamedTuple

Label = Literal["supported", "contradicted", "unsupported"]


class Annotated(NamedTuple):
    hazard: str
    label: Label
    claim: str
    context: str


CLAIMS = [
    Annotated(*row)
    for row in (
        ("negation", "supported", "The patient has no penicillin allergy.",
         "Seen in clinic today. The patient does not have a penicillin allergy. Amoxicillin was prescribed."),
        ("negation", "contradicted", "The patient has a penicillin allergy.",
         "It is not true that the patient has a penicillin allergy."),
        ("negation", "supported", "The chest X-ray shows a pleural effusion.",
         "The chest X-ray shows a pleural effusion on the left. Furosemide was started."),
        ("negation", "contradicted", "There is evidence of pulmonary embolism on the CT scan.",
         "The CT scan was of good quality. There is no evidence of pulmonary embolism on the CT scan."),
        ("numerical", "supported", "He takes bisoprolol 5 mg once daily.",
         "Medication: He takes bisoprolol 5 mg once daily in the morning. No change was made."),
        ("numerical", "contradicted", "He takes bisoprolol 50 mg once daily.",
         "Medication was reviewed. He takes bisoprolol 5 mg once daily."),
        ("numerical", "supported", "The loading dose of the drug is 1 g intravenously.",
         "The loading dose of the drug is 1000 mg intravenously. It is given over one hour."),
        ("numerical", "contradicted", "The loading dose of levothyroxine is 100 mg.",
         "The loading dose of levothyroxine is 100 mcg. Levels are checked after six weeks."),
        ("temporal", "supported", "Warfarin was stopped before the operation.",
         "Before the operation warfarin was stopped. She went home on day three."),
        ("temporal", "contradicted", "Warfarin was stopped after the operation.",
         "Warfarin was stopped before the operation."),
        ("temporal", "supported", "Antibiotics were given for seven days.",
         "Antibiotics were given for 7 days. The fever settled."),
        ("temporal", "contradicted", "The patient currently smokes.",
         "The patient stopped smoking ten years ago. He drinks little."),
        ("entity_swap", "supported", "Metformin was replaced by gliclazide.",
         "Gliclazide replaced metformin. The HbA1c will be checked in three months."),
        ("entity_swap", "contradicted", "Gliclazide was replaced by metformin.",
         "Metformin was replaced by gliclazide."),
        ("entity_swap", "supported", "Hydroxyzine is given for itching.",
         "For itching hydroxyzine is given. The rash is drying."),
        ("entity_swap", "contradicted", "Hydralazine is given for itching.",
         "Hydroxyzine is given for itching."),
        ("hedging", "supported", "The lesion is suspicious for malignancy.",
         "The lesion is suspicious for malignancy on ultrasound. A biopsy is planned."),
        ("hedging", "contradicted", "The patient has confirmed tuberculosis.",
         "The patient has suspected tuberculosis. Sputum was sent."),
        ("hedging", "supported", "Aspirin may reduce the risk of preterm birth.",
         "Aspirin might reduce the risk of preterm birth. Larger trials are under way."),
        ("hedging", "contradicted", "Pneumonia was ruled out by the chest film.",
         "Pneumonia was confirmed by the chest film."),
        ("quantifier", "supported", "Most patients tolerated the drug well.",
         "The drug was well tolerated by most patients. Two withdrew."),
        ("quantifier", "contradicted", "All patients tolerated the drug well.",
         "Few patients tolerated the drug well."),
        ("quantifier", "supported", "Headache always follows the visual aura.",
         "Headache always follows the visual aura in this patient. She takes sumatriptan."),
        ("quantifier", "contradicted", "Headache always follows the visual aura.",
         "Headache never follows the visual aura."),
        ("none", "unsupported", "The patient had an appendectomy in childhood.",
         "The patient takes ramipril for hypertension. Blood pressure is well controlled."),
        ("none", "unsupported", "She was treated with cisplatin for ovarian cancer.",
         "She was seen for a sprained ankle. An X-ray was normal."),
        ("none", "contradicted", "The patient has asthma.",
         "Does the patient have asthma? The patient has asthma. This was later found to be wrong: it was an error."),
        ("none", "contradicted", "Breast cancer at the age of 45.",
         "Family history:\nBreast cancer at the age of 45."),
    )
]  # fmt: skip

"""A starved flow is named with what it gets, in claims and regions alike."""

from replication.study.claim_model import Quantity
from replication.verdicts.claim import evaluate_claim
from replication.verdicts.starved import starved, starved_note
from tests.unit.world import NOTHING  # placeholder

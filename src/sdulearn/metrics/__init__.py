"""How good a classifier is, by answers alone; estimates come with intervals."""

from sdulearn.metrics.accuracy import AccuracyEstimate, pair_accuracy
from sdulearn.metrics.audit import Audit, Difference, audit_predictions
from sdulearn.metrics.classes import AnswerCounts, ClassAgreement, Share, class_agreement
from sdulearn.metrics.cross_validation import (
    cross_val_accuracy,
    cross_val_agreement,
    folds_over_points,
    held_out,
    held_out_accuracy,
)
from sdulearn.metrics.scores import (
    Calibration,
    PairImportance,
    calibration,
    pair_calibration,
    pair_importance,
    pair_log_likelihood,
    pair_risk,
)

__all__ = [
    "AccuracyEstimate",
    "AnswerCounts",
    "Audit",
    "Calibration",
    "ClassAgreement",
    "Difference",
    "PairImportance",
    "Share",
    "audit_predictions",
    "calibration",
    "class_agreement",
    "cross_val_accuracy",
    "cross_val_agreement",
    "folds_over_points",
    "held_out",
    "held_out_accuracy",
    "pair_accuracy",
    "pair_calibration",
    "pair_importance",
    "pair_log_likelihood",
    "pair_risk",
]

"""All that is used of scikit-learn beyond its public API, so that a new release is checked in one place."""

from sklearn.base import _fit_context as fit_context
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._indexing import _get_column_indices as column_indices
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_feature_names as check_feature_names

__all__ = [
    "HasMethods",
    "Interval",
    "StrOptions",
    "check_feature_names",
    "column_indices",
    "fit_context",
    "safe_indexing",
]

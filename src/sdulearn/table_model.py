"""``TableModel``: an estimator with the columns of a table and a report; ``load_model``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils.validation import check_is_fitted

from sdulearn.errors import InputError, ModelFileError, UnseenCategoryWarning, reason, warn
from sdulearn.io import container
from sdulearn.io.files import Location, written_whole
from sdulearn.io.typed import finite, plain, read
from sdulearn.losses import TRAINING_LOSSES
from sdulearn.reading import Reading
from sdulearn.report.page import opening_of, whole_page
from sdulearn.report.records import FitReport
from sdulearn.report.results import Opening, findings_of_model, lines
from sdulearn.tables.columns import Column, Columns, Transformer, as_arrow, check_layout
from sdulearn.tables.encoders import EncodedImages
from sdulearn.tables.features import ImageFeatures, TextFeatures
from sdulearn.tables.source import read_whole
from sdulearn.tables.text_models import EmbeddedTexts
from sdulearn.types import Array, ClassName, Codes, Count, Estimator, Frame, Indices, Rows

# Estimators that a file may hold; imported when needed: a linear model does not need trees.
MODELS = ("SDUClassifier", "SDUClassifierCV", "PairLogisticRegression", "PairLogisticRegressionCV",
          "PairBoostingClassifier", "PairModelCV", "ContrastiveEncoder")  # fmt: skip
# Errors of a forged header.
_FORGED = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, IndexError)


@dataclass(frozen=True, eq=False)
class AskedRows:
    """The rows in the answers of a fit, in the order of the table."""

    ids: Sequence[str]
    by_model: Array  # (n_rows, n_classes), class probabilities by features
    unseen: Array  # the same, from models that have not seen the answers about the row
    probabilities: Array  # by features and answers
    n_answers: Codes

    def __post_init__(self) -> None:
        shape = (len(self.ids), self.probabilities.shape[-1])
        of_rows = (self.by_model, self.unseen, self.probabilities)
        if any(p.shape != shape for p in of_rows) or self.n_answers.shape != shape[:1]:
            raise ValueError("the rows that were asked about do not fit together")
        if any((p < 0).any() or not np.allclose(p.sum(axis=1), 1) for p in of_rows) or (self.n_answers < 1).any():
            raise ValueError("the rows asked about have no class probabilities, or no answers")


@dataclass(frozen=True, repr=False)
class TableModel:
    """A fitted model that predicts from a raw table.

    Attributes
    ----------
    estimator : estimator
        Fitted on standardised features: a :class:`~sdulearn.PairLogisticRegressionCV`, for example.
    columns : Columns
        How a table becomes features, with their ``mean`` and ``scale`` in training.
    classes : tuple of int or of str
        Names of the classes: those of the labels, or else -1 and +1, or 1 to K if there are more.
    report : FitReport or None
        The report of the fit.
    asked : AskedRows or None
        The rows in answers, which ``answered`` shows.
    reading : Reading
        How the training table was read.

    See Also
    --------
    sdulearn.fit_table : Fit one from a table and answers.
    sdulearn.load_model : Read one that was saved.
    """

    estimator: Estimator
    columns: Columns
    classes: tuple[int, ...] | tuple[str, ...] = (-1, 1)
    report: FitReport | None = None
    asked: AskedRows | None = field(default=None, repr=False, compare=False)
    reading: Reading = field(default_factory=Reading, repr=False)

    @property
    def answered(self) -> dict[str, NDArray[Any]] | None:
        """Classes of the rows in answers, from their features and the answers about them.

        Arrays "id", "class" (names), "probabilities" (n_rows, n_classes) and "n_answers", in the order of the table.
        None for the risks of the paper, which do not estimate how often answers are wrong.
        """
        if self.asked is None:
            return None
        p = self.asked.probabilities
        ids = np.array(self.asked.ids, dtype=object)
        return {
            "id": ids,
            "class": self._named(p.argmax(axis=1)),
            "probabilities": p,
            "n_answers": self.asked.n_answers,
        }

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the classes as text."""
        return tuple(map(str, self.classes))

    def _named(self, places: Indices) -> NDArray[Any]:
        """Return the names of the classes at these places."""
        kind = object if isinstance(self.classes[0], str) else np.int64
        return np.array(self.classes, dtype=kind)[places]

    def features(self, table: Frame, *, embedding: Location | None = None) -> Array:
        """Encode a raw table as features, not yet scaled.

        Parameters
        ----------
        table : frame
            With the columns of the training table, in any order; others are ignored.
        embedding : str or path-like, optional
            The file of vectors of its rows, if the model was fitted with one.

        Returns
        -------
        array of shape (n_rows, n_features)
            The features.
        """
        arrow = as_arrow(table) if embedding is None else read_whole(as_arrow(table), embedding)
        needed = self.columns.needed("The table", arrow.column_names)
        X, unseen = self.columns.encode("the table", arrow.select(needed))
        for name, count in unseen.items():
            warn(f"{self.columns.unseen_words(name, count)}.", UnseenCategoryWarning)
        return X

    def decision_function(self, table: Frame, *, embedding: Location | None = None) -> Array:
        """Return decision values: positive for the second of two classes; one per class with more.

        Parameters
        ----------
        table, embedding
            As in :meth:`features`.

        Returns
        -------
        array of shape (n_rows,) or (n_rows, n_classes)
            Decision values.
        """
        return np.asarray(
            self.estimator.decision_function(self.columns.scaled(self.features(table, embedding=embedding)))
        )

    def predict(self, table: Frame, *, embedding: Location | None = None) -> NDArray[Any]:
        """Predict the name of the class of each row.

        Parameters
        ----------
        table, embedding
            As in :meth:`features`.

        Returns
        -------
        int array, or object array of str, of shape (n_rows,)
            Class names.
        """
        return self._named(self.decide(self.features(table, embedding=embedding))[0])

    def predict_proba(self, table: Frame, *, embedding: Location | None = None) -> Array:
        """Predict the probability of each class.

        Parameters
        ----------
        table, embedding
            As in :meth:`features`.

        Returns
        -------
        array of shape (n_rows, n_classes)
            Columns in the order of ``classes``.
        """
        probability = self.decide(self.features(table, embedding=embedding))[1]
        if probability is None:
            raise InputError("The loss of this model gives no probabilities. Fit with `loss='logistic'`.")
        return probability

    def decide(self, X: Rows) -> tuple[Indices, Array | None]:
        """Predict places of classes and probabilities from unscaled features.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_rows, n_features)
            From :meth:`features`.

        Returns
        -------
        place : int array of shape (n_rows,)
            Place in ``classes``.
        probability : array of shape (n_rows, n_classes) or None
            None if the loss gives none.
        """
        decision = np.asarray(self.estimator.decision_function(self.columns.scaled(X)))
        if decision.ndim == 2:
            return np.argmax(decision, axis=1), np.asarray(softmax(decision, axis=1))
        place = (decision > 0).astype(np.intp)
        if self.link is None:
            return place, None
        second = TRAINING_LOSSES[self.link].probability(decision)
        return place, np.column_stack([1 - second, second])

    @property
    def link(self) -> str | None:
        """The loss that turns decision values into probabilities; None if it cannot."""
        loss = getattr(self.estimator, "loss", "logistic")
        return loss if hasattr(TRAINING_LOSSES[loss], "probability") else None

    def summary(self) -> str:
        """Return the report as text, one sentence per line.

        Returns
        -------
        str
            What was learned, how accurate it is, and what to do next; then, indented, warnings, notes and numbers.
            Names of parameters are in backticks.
        """
        return "\n".join(lines(findings_of_model(self), indent="  "))

    def write_report(self, path: Location, *, model_path: Location | None = None) -> None:
        """Write the report page, one self-contained HTML file.

        Parameters
        ----------
        path : str or path-like
            File to write; it appears whole or not at all.
        model_path : str or path-like, optional
            Where the model was saved; the title of the page, which shows how to predict with it.
        """
        command = "" if model_path is None else f"sdulearn predict {model_path} TABLE -o out.csv"
        page = whole_page(Path(model_path or path).name, findings_of_model(self), command)
        with written_whole(path) as draft:
            draft.write_text(page, encoding="utf-8")

    def __repr__(self) -> str:
        if self.report is None:
            return f"TableModel({type(self.estimator).__name__}, {self.columns.width:,} features, {self.classes})"
        return "TableModel: " + "\n".join(lines(one for one in findings_of_model(self) if isinstance(one, Opening)))

    def _repr_html_(self) -> str:
        return opening_of(findings_of_model(self))

    def save(self, path: Location) -> None:
        """Write the model to one file of numbers and JSON, no code; read it with ``load_model``.

        Parameters
        ----------
        path : str or path-like
            File to write; it appears whole or not at all.
        """
        check_is_fitted(self.estimator)
        estimator, arrays = container.describe_estimator(self.estimator)
        columns = self.columns
        layout: container.Header = {"columns": plain(columns.columns), "makers": {}}
        layout |= {"id_column": columns.id_column, "keep_gaps": columns.keep_gaps}
        header: container.Header = {"model": "TableModel", "estimator": estimator, "layout": layout}
        header |= {
            "classes": list(self.classes),
            "report": plain(self.report),
            "reading": plain(self.reading.changed()),
        }
        parts = {f"estimator:{name}": array for name, array in arrays.items()}
        for name, transformer in columns.transformers.items():
            # Terms go to the header, numbers to arrays.
            described: dict[str, Any] = {k: v for k, v in vars(transformer).items() if isinstance(v, tuple)}
            if isinstance(transformer, EncodedImages):
                described["encoder"], own = container.describe_estimator(transformer.encoder)
                parts |= {f"encoder {list(columns.transformers).index(name)}:{k}": array for k, array in own.items()}
            if isinstance(transformer, EmbeddedTexts):
                described |= {"model": transformer.model, "width": transformer.width}
            layout["makers"][name] = described
            parts |= {f"{k}:{name}": v for k, v in vars(transformer).items() if isinstance(v, np.ndarray)}
        if columns.encoder is not None:
            layout["encoder"], own = container.describe_estimator(columns.encoder)
            parts |= {f"encoder:{k}": array for k, array in own.items()}
        if self.asked is not None:
            asked = vars(self.asked).copy()
            header["asked"] = list(asked.pop("ids"))
            parts |= {f"asked:{name}": array for name, array in asked.items()}
        container.write(path, header, {**parts, "mean": columns.mean, "scale": columns.scale})


def load_model(path: Location) -> Estimator | TableModel:
    """Read a fitted model from a file that ``save`` wrote.

    The file contains numbers and JSON; nothing is unpickled or run, so an untrusted file is safe to open.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    estimator or TableModel
        Fitted, of the class that was saved.

    Raises
    ------
    ModelFileError
        A ValueError: the file is foreign, truncated, altered, or of another format version.

    See Also
    --------
    sdulearn.fit_table : Fit a model of a table.
    """
    header, arrays = container.read(path)
    try:
        if header["model"] != "TableModel":
            return _estimator(header, arrays)
        kind = "estimator:"
        own = {name.removeprefix(kind): array for name, array in arrays.items() if name.startswith(kind)}
        return _table_model(header, arrays, _estimator(header["estimator"], own))
    except _FORGED as error:
        what = f"{path} does not describe an sdulearn model: {reason(error)}"
        raise ModelFileError(
            f"{what}. If a development version wrote it, fit the model again. {container.READABLE}"
        ) from None


def _estimator(header: container.Header, arrays: container.Arrays) -> Estimator:
    """Restore an estimator, which checks its own parameters."""
    if header["model"] not in MODELS:
        raise ValueError(f"unknown model {header['model']!r}")
    home = "sdulearn.torch" if header["model"] == "ContrastiveEncoder" else "sdulearn"
    return container.restored(getattr(import_module(home), header["model"]), header, arrays)


def _table_model(header: container.Header, arrays: container.Arrays, estimator: Estimator) -> TableModel:
    """Restore a model of a table, with the type and size of every part checked."""
    columns = _columns(header["layout"], arrays)
    check_layout(columns)
    if columns.encoder is not None and columns.encoder.n_features_in_ != columns.width:
        raise ValueError("columns and their encoder do not fit together")
    if columns.n_inputs != estimator.n_features_in_:
        raise ValueError("columns and coefficients do not fit together")
    classes = read(tuple[ClassName, ...] | tuple[str, ...], header["classes"])
    if len(classes) != len(estimator.classes_) or len(set(classes)) < len(classes):
        raise ValueError("the names of the classes do not tell the classes of the estimator apart")
    asked = _asked(header, arrays) if "asked" in header else None
    if asked is not None and asked.probabilities.shape[1] != len(classes):
        raise ValueError("the rows that were asked about have other classes")
    reading, report = read(Reading, header["reading"]), read(FitReport | None, header["report"])
    if report is not None and len(report.classes) != len(classes):
        raise ValueError("the report has other classes")
    return TableModel(estimator, columns, classes, report, asked, reading)


def _asked(header: container.Header, arrays: container.Arrays) -> AskedRows:
    """Read the rows that were asked about."""
    of_rows = {name: finite(arrays[f"asked:{name}"]) for name in ("by_model", "unseen", "probabilities")}
    n_answers = arrays["asked:n_answers"]
    if n_answers.dtype.kind != "i":
        raise ValueError("numbers of answers are not whole numbers")
    return AskedRows(read(list[str], header["asked"]), **of_rows, n_answers=n_answers)


def _columns(layout: container.Header, arrays: container.Arrays) -> Columns:
    columns = read(tuple[Column, ...], layout["columns"])
    transformers: dict[str, Transformer] = {}
    for column in columns:
        described = layout["makers"].get(column.name, {})
        if column.kind == "text" and "model" in described:
            # A file may not say that the text model is to be downloaded.
            kinds = {"model": str, "width": Count, "texts": tuple[str, ...], "checksum": tuple[float, ...]}
            transformers[column.name] = EmbeddedTexts(*(read(kind, described[key]) for key, kind in kinds.items()))
        elif column.kind == "image" and "encoder" in described:
            transformers[column.name] = EncodedImages(
                _encoder(described["encoder"], arrays, f"encoder {len(transformers)}:")
            )
        elif kind := {"text": TextFeatures, "image": ImageFeatures}.get(column.kind):
            terms = read(dict[str, tuple[str, ...]], described)
            names = [field.name for field in fields(kind) if field.name not in terms]
            numbers = {name: finite(arrays[f"{name}:{column.name}"]) for name in names}
            transformers[column.name] = kind(**terms, **numbers)
    id_column, keep_gaps = read(str | None, layout["id_column"]), read(bool, layout["keep_gaps"])
    mean, scale = finite(arrays["mean"]), finite(arrays["scale"])
    encoder = _encoder(layout["encoder"], arrays, "encoder:") if "encoder" in layout else None
    return Columns(columns, id_column, mean, scale, transformers, keep_gaps=keep_gaps, encoder=encoder)


def _encoder(described: container.Header, arrays: container.Arrays, prefix: str) -> Estimator:
    """Read a ContrastiveEncoder."""
    if described["model"] != "ContrastiveEncoder":
        raise ValueError(f"{described['model']!r} is not an encoder")
    return _estimator(described, {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)})

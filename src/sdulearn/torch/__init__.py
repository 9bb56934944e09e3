"""The likelihood of same/different answers for PyTorch: a loss, batches, and an estimator (extra ``torch``)."""

from sdulearn.torch.batches import PairBatchSampler, distort_images
from sdulearn.torch.estimator import PairNetworkClassifier
from sdulearn.torch.loss import pair_nll, unlabeled_loss

__all__ = ["PairBatchSampler", "PairNetworkClassifier", "distort_images", "pair_nll", "unlabeled_loss"]

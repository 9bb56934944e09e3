"""The likelihood of answers for PyTorch: a loss, batches and an estimator."""

from sdulearn.torch.batches import PairBatchSampler, distort_images
from sdulearn.torch.estimator import PairNetworkClassifier
from sdulearn.torch.loss import pair_nll, unlabeled_loss

__all__ = ["PairBatchSampler", "PairNetworkClassifier", "distort_images", "pair_nll", "unlabeled_loss"]

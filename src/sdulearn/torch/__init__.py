"""Features of images and signals by PyTorch, and the likelihood of answers as a loss of any network."""

from sdulearn.torch.batches import PairBatchSampler
from sdulearn.torch.encoder import ContrastiveEncoder
from sdulearn.torch.loss import pair_nll, unlabeled_loss

__all__ = ["ContrastiveEncoder", "PairBatchSampler", "pair_nll", "unlabeled_loss"]

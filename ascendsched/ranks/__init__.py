"""Jobs of several processes: collectives as operators of a graph, over torch.distributed (gloo) or mpi4py.

The transport is theirs; this package adds what a scheduler needs on top: operators, agreement on the next step's mode,
skew between ranks, and errors within a deadline. Both are extras: `pip install ascendsched[ranks]` or `[mpi]`.
"""

from ascendsched.ranks.agreement import Agreement, Choice
from ascendsched.ranks.group import Group, join
from ascendsched.ranks.job import Job
from ascendsched.ranks.operators import all_gather, all_reduce
from ascendsched.ranks.skew import SkewReport, measure_skew

__all__ = ["Agreement", "Choice", "Group", "Job", "SkewReport", "all_gather", "all_reduce", "join", "measure_skew"]

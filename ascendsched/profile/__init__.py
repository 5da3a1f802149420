"""What host and device did, and which of them was the bottleneck. Pure Python: works without the extension."""

from ascendsched.profile.idle import CAUSES, IdleTime, explain_idle
from ascendsched.profile.profile import Profile
from ascendsched.profile.spans import SPAN_DTYPE, STAGES, Recording, Spans
from ascendsched.profile.trace import trace_events, write_trace
from ascendsched.profile.verdict import VERDICTS, Verdict, judge

__all__ = [
    "CAUSES",
    "SPAN_DTYPE",
    "STAGES",
    "VERDICTS",
    "IdleTime",
    "Profile",
    "Recording",
    "Spans",
    "Verdict",
    "explain_idle",
    "judge",
    "trace_events",
    "write_trace",
]

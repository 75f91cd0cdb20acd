"""Made-up reports of how a batch was aligned."""

from dataclasses import replace

from hypothesis import strategies as st

from f5py.compute.gpu.tuning.decision_trees import BatchReport, TunedOptions

#: Says nothing in either tree: 80 % and 80 % used, equal times.
FINE = BatchReport(
    n_reads=512,
    n_bases=4_000_000,
    gpu_reads=500,
    gpu_bases=3_999_500,
    gpu_events=8_000_000,
    capacity_bases=5_000_000,
    capacity_events=10_000_000,
    n_cpu_long=0,
    n_cpu_many_events=0,
    n_cpu_no_memory=0,
    n_cpu_ultra=0,
    cpu_seconds=1.0,
    gpu_seconds=1.0,
    options=TunedOptions(),
)
#: The same in round numbers, so that percent can be given: X and Y are 1,000,000 each.
SQUARE = replace(FINE, gpu_reads=0, capacity_bases=1_000_000, capacity_events=1_000_000)


def used(bases, events, **others):
    """Make the report of a batch that uses so many percent of X and Y."""
    return replace(SQUARE, gpu_bases=round(bases * 10_000), gpu_events=round(events * 10_000), **others)


def cut_by_reads(options=FINE.options, **others):
    return used(10, 20, n_reads=options.batchsize, n_bases=options.max_bases - 1, options=options, **others)


def cpu_bound(**others):
    return replace(FINE, cpu_seconds=4.0, gpu_seconds=1.0, **others)


GPU_BOUND = replace(FINE, cpu_seconds=1.0, gpu_seconds=4.0)


#: Any batch at all, and any options.
_COUNT = st.integers(0, 2000)
_SECONDS = st.one_of(st.just(0.0), st.floats(1e-6, 1e3))
REPORTS = st.builds(
    BatchReport,
    n_reads=_COUNT,
    n_bases=st.integers(0, 10_000_000),
    gpu_reads=_COUNT,
    gpu_bases=st.integers(0, 5_000_000),
    gpu_events=st.integers(0, 10_000_000),
    capacity_bases=st.integers(0, 5_000_000),
    capacity_events=st.integers(0, 10_000_000),
    n_cpu_long=_COUNT,
    n_cpu_many_events=_COUNT,
    n_cpu_no_memory=_COUNT,
    n_cpu_ultra=_COUNT,
    cpu_seconds=_SECONDS,
    gpu_seconds=_SECONDS,
    options=st.just(TunedOptions()),
)
OPTIONS = st.builds(
    TunedOptions,
    batchsize=st.integers(1, 100_000),
    max_bases=st.integers(1, 10**9),
    cuda_max_lf=st.floats(0.1, 50),
    cuda_avg_epk=st.floats(0.1, 20),
    cuda_max_epk=st.floats(0.1, 20),
    ultra_thresh=st.integers(1, 10**8),
    threads=st.integers(1, 128),
)


def spoken(reports, advisor, capsys):
    """Return the numbers, from 1, of the batches after which there was a message."""
    said = []
    for number, report in enumerate(reports, 1):
        advisor.observe(report)
        if capsys.readouterr().err:
            said.append(number)
    return said

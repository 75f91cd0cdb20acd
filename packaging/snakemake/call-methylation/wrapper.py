"""Snakemake wrapper of ``f5py call-methylation``; see meta.yaml."""

from shlex import quote

from snakemake.shell import shell

#: Options of inputs, which are named like these, and of outputs by their names.
_INPUTS = ("reads", "bam", "genome", "slow5", "pod5", "fast5", "meth_model", "kmer_model")
_OUTPUTS = {"calls": "--output", "modbam": "--modbam", "bedmethyl": "--bedmethyl", "report": "--report"}

job = snakemake  # noqa: F821 - put here by Snakemake
inputs, outputs = dict(job.input.items()), dict(job.output.items())
words = ["f5py", "call-methylation", "--threads", str(job.threads)]
for name in _INPUTS:
    if name in inputs:
        words += [f"--{name.replace('_', '-')}", quote(str(inputs[name]))]
for name, option in _OUTPUTS.items():
    if name in outputs:
        words += [option, quote(str(outputs[name]))]
if "calls" not in outputs:
    words += ["--output-format", "none"]
log = job.log_fmt_shell(stdout=False, stderr=True)
shell(f"{' '.join(words)} {job.params.get('extra', '')} {log}")

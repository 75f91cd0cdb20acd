// call-methylation in parts: plan, work on each, finish. The work folder must be one that all jobs see; parts are
// written into the folder of the plan.

process F5PY_PLAN {
    tag "$meta.id"
    label 'process_single'

    input:
    tuple val(meta), path(bam), path(bai), path(signals)
    tuple val(meta2), path(fasta), path(fai)
    val n_parts

    output:
    tuple val(meta), path("plan")

    script:
    def args = task.ext.args ?: ''
    def kind = signals.name ==~ /.*\.[sb]low5/ ? 'slow5' : signals.name.contains('fast5') ? 'fast5' : 'pod5'
    """
    f5py call-methylation --plan plan --partitions $n_parts -b $bam -g $fasta --$kind $signals \\
        -o "\$PWD/${meta.id}.calls.tsv.gz" $args
    """
}

process F5PY_RUNPART {
    tag "$meta.id $part"
    label 'process_high'
    errorStrategy 'retry'
    maxRetries 3

    input:
    tuple val(meta), path(plan), val(part)

    output:
    tuple val(meta), path(plan)

    script:
    """
    f5py run-part "\$(readlink -f $plan)" $part -t $task.cpus
    """
}

process F5PY_FINISH {
    tag "$meta.id"
    label 'process_medium'

    input:
    tuple val(meta), path(plan)

    output:
    tuple val(meta), path("${meta.id}.calls.tsv.gz"), emit: calls

    script:
    """
    f5py finish "\$(readlink -f $plan)" -t $task.cpus
    mv "\$(dirname "\$(readlink -f $plan)")/${meta.id}.calls.tsv.gz" .
    """
}

workflow F5PY_PARTS {
    take:
    ch_reads    // [ meta, bam, bai, signals ]
    ch_genome   // [ meta2, fasta, fai ]
    n_parts

    main:
    F5PY_PLAN(ch_reads, ch_genome, n_parts)
    F5PY_RUNPART(F5PY_PLAN.out.combine(Channel.of(0..<n_parts)))
    F5PY_FINISH(F5PY_RUNPART.out.groupTuple(size: n_parts).map { meta, plans -> [meta, plans[0]] })

    emit:
    calls = F5PY_FINISH.out.calls
}

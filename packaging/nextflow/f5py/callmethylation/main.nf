process F5PY_CALLMETHYLATION {
    tag "$meta.id"
    label 'process_high'

    // Not published yet, neither as a package nor as an image: environment.yml says what to build first, and
    // packaging/containers/Containerfile makes the image localhost/f5py (podman build -t f5py).
    conda "${moduleDir}/environment.yml"
    container "localhost/f5py"

    input:
    tuple val(meta), path(bam), path(bai), path(signals)
    tuple val(meta2), path(fasta), path(fai)

    output:
    tuple val(meta), path("*.calls.tsv.gz")  , emit: calls
    tuple val(meta), path("*.mod.bam")       , emit: bam
    tuple val(meta), path("*.bed.gz")        , emit: bedmethyl
    tuple val(meta), path("*.bed.gz.tbi")    , emit: tbi
    tuple val(meta), path("*_mqc.json")      , emit: report
    tuple val("${task.process}"), val('f5py'), eval("f5py --version | sed 's/f5py //'"), topic: versions, emit: versions_f5py

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def kind = signals.name ==~ /(?i).*[sb]low5/ ? '--slow5' : signals.name ==~ /(?i).*pod5.*/ ? '--pod5' : '--fast5'
    """
    f5py call-methylation \\
        $args \\
        --threads $task.cpus \\
        --bam $bam \\
        --genome $fasta \\
        $kind $signals \\
        --sample $prefix \\
        --output ${prefix}.calls.tsv.gz \\
        --modbam ${prefix}.mod.bam \\
        --bedmethyl ${prefix}.bed.gz \\
        --report ${prefix}_mqc.json
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    echo "" | gzip > ${prefix}.calls.tsv.gz
    touch ${prefix}.mod.bam
    echo "" | gzip > ${prefix}.bed.gz
    touch ${prefix}.bed.gz.tbi
    touch ${prefix}_mqc.json
    """
}

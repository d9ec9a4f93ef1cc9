# Conformance: what every engine must show in canonical scenarios, whichever study it runs for.


rule run_conformance:
    input:
        conformance="configs/conformance.yaml",
        program=lambda wildcards: PIPE.program_of(wildcards.engine),
    output:
        rows=f"{PATHS.data}/conformance/{{engine}}.csv",
        recovery=f"{PATHS.data}/conformance/{{engine}}.recovery.csv",
        cwnd=f"{PATHS.data}/conformance/{{engine}}.cwnd.csv",
    log:
        f"{PATHS.data}/logs/run_conformance/{{engine}}.log",
    benchmark:
        f"{PATHS.data}/benchmarks/run_conformance/{{engine}}.tsv"
    localrule: True
    params:
        code=PIPE.code.judge,
        launch=lambda wildcards: PIPE.launch_of(wildcards.engine),
        fingerprint=lambda wildcards: PIPE.fingerprint(wildcards.engine),
    shell:
        'echo "holding {wildcards.engine} against the canonical scenarios" >&2; '
        "replicate step conformance --engine {wildcards.engine} {params.launch}"
        " --fingerprint {params.fingerprint}"
        " --output {output.rows} > {log} 2>&1 || {{ cat {log} >&2; exit 1; }}"


rule merge_conformance:
    input:
        conformance="configs/conformance.yaml",
        rows=expand(rules.run_conformance.output.rows, engine=PIPE.engines),
        recovery=expand(rules.run_conformance.output.recovery, engine=PIPE.engines),
        cwnd=expand(rules.run_conformance.output.cwnd, engine=PIPE.engines),
    output:
        rows=f"{PATHS.data}/conformance.csv",
        cwnd=f"{PATHS.data}/conformance_cwnd.csv",
    log:
        f"{PATHS.data}/logs/merge_conformance.log",
    benchmark:
        f"{PATHS.data}/benchmarks/merge_conformance.tsv"
    localrule: True
    params:
        code=PIPE.code.judge,
        engines=PIPE.engines,
        data=PATHS.data,
    shell:
        'echo "putting the conformance of the engines together" >&2; '
        "replicate step merge-conformance {params.engines} --data {params.data} > {log} 2>&1"
        " || {{ cat {log} >&2; exit 1; }}"

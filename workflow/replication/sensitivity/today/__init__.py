"""Today: the papers' claims, judged on a stack that people deploy now.

In: a study, and what replaces the values that the engine cannot have (configs/today.yaml). Out: a
verdict for each claim, which stands beside the study's own and never for it. A further study is an
entry of the file.
"""

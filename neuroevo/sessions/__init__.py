"""Training sessions: the evaluator and the folder of a run that a process starts, resumes or forks."""

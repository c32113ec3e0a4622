"""A process that trains a run: its evaluator, and the folder that it begins, resumes or forks, and records into."""

"""The generation loop: ask, evaluate, tell, and the elite's own evaluation beside it."""

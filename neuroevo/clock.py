"""Wall time as people read it."""


def clock(seconds: float) -> str:
    """hours:minutes:seconds, with as many hours as there are."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"

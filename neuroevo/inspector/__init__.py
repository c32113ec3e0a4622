"""Local web page to inspect populations, `neuroevo inspect`: the server, its data and the page."""

"""A local page to look into populations: `neuroevo inspect`. The server, what it answers, and the page itself."""

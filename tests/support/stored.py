"""States and genomes that a database has kept, for tests of what is stored exactly."""

from pathlib import Path
from tempfile import TemporaryDirectory

from neuroevo.runs.database import DATABASE, Database
from neuroevo.runs.genome_rows import GenomeWriter, read_genomes
from neuroevo.runs.state_rows import read_state, write_state


def stored_state(state, state_type):
    """Write a state into a new database, and return it as read through another connection."""

    def write(database):
        write_state(database, state, GenomeWriter(database))

    return _stored(write, lambda database, _: read_state(database, state.generation, state_type).state)


def stored_genomes(genomes):
    """Return genomes after the same round trip."""
    return _stored(
        lambda database: GenomeWriter(database).rows_of(genomes),
        lambda database, numbers: [read_genomes(database, numbers)[number] for number in numbers],
    )


def _stored(write, read):
    with TemporaryDirectory() as folder:
        file = Path(folder) / DATABASE
        with Database(file, "rwc") as database:
            database.execute("PRAGMA synchronous = OFF")
            database.create_tables()
            database.execute("BEGIN")
            written = write(database)
            database.execute("COMMIT")
        with Database(file) as database:
            return read(database, written)

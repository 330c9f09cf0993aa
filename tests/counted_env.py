"""An environment that counts its instances, in a module that worker processes can import."""

from hindsight_rl import PointReach


class Counted(PointReach):
    """Counts the environments that are made and closed."""

    made, closed = 0, 0

    def __init__(self):
        super().__init__(max_steps=10)
        Counted.made += 1

    def close(self):
        super().close()
        Counted.closed += 1

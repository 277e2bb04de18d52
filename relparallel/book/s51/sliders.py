"""Plans moved by hand."""

from importlib import import_module

from relparallel.planning.plans import Plan
from relparallel.units import DAY, HOUR, MINUTE


def sliders(plan: Plan) -> object:
    """Show sliders for a plan's failure rate and repair time, and a sentence that follows them.

    Where ipywidgets is missing: how to install it.
    """
    try:
        widgets = import_module("ipywidgets")
    except ImportError:
        return "pip install 'relparallel[sliders]' shows sliders here"

    def told(scale: float, hours: float) -> str:
        """Say the best choice at other failure rates and another repair time."""
        best = plan.best.at(scale=scale, repair=hours * HOUR)
        return (
            f"{best.goodput * DAY / 1e9:.4g}e9 tokens a day, relative goodput {best.share:.2%}: "
            f"{best.policy}, checkpoint every {best.interval / MINUTE:.1f} min, {best.spares} "
            "spare nodes"
        )

    rate = widgets.FloatLogSlider(value=1.0, base=10, min=-1, max=1.5, description="failures x")
    repair = widgets.FloatLogSlider(value=24.0, base=10, min=-1, max=2.5, description="repair [h]")
    return widgets.interactive(told, scale=rate, hours=repair)

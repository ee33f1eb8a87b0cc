"""Market data: bars and ticks of symbols, as providers have them.

In:    a provider (where its pages are, and how they are read), symbols, and the time since when.
Out:   one document for each bar, tick, split or dividend; adjusted prices; differences between two providers.
Never: values that no provider has said, in the collection of the source; a request outside the one way out.
"""

from penstock.connectors.market.connector import Market
from penstock.connectors.market.events import Event
from penstock.connectors.market.provider import Frame, Page, Provider, Subscription

__all__ = ["Event", "Frame", "Market", "Page", "Provider", "Subscription"]

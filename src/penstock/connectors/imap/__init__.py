"""The connector `imap`: mailboxes, from a server or as a Maildir on disk.

In:    a server and a login, or a folder of Maildirs; which folders of the mailbox are meant.
Out:   one document for each message, with its thread, flags and the text of its attachments.
Never: marking a message as read, moving or deleting one.
"""

from penstock.connectors.imap.connector import Imap

__all__ = ["Imap"]

// Time, addresses, levels and RTP's own values are part of this module's interface: who imports it needs no other import.
@_exported public import CallBasics
@_exported public import RTP

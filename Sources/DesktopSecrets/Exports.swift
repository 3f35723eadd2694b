// The shape of this module's errors is part of its interface: who imports it needs no other import.
@_exported public import struct CallBasics.Failure

/// Bytes that no description shows: a password, a key, or a hash that serves as one.
package struct Secret: Hashable, Sendable {
    package let bytes: Bytes

    package init(_ bytes: Bytes) { self.bytes = bytes }

    package init(_ text: String) { bytes = Bytes(text) }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "(secret)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

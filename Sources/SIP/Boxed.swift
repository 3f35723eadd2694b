/// A part of a value that may be missing, and stands in memory of its own: a copy of the whole copies a reference to it.
///
/// It is a value all the same; who changes it while others share it gets one of its own.
@propertyWrapper package struct Boxed<Value: Sendable>: Sendable {
    /// Nobody changes one that is shared.
    private final class Box: @unchecked Sendable {
        var value: Value?

        init(_ value: Value?) { self.value = value }
    }

    private var box: Box?

    package init(wrappedValue: Value?) { box = wrappedValue.map { Box($0) } }

    package var wrappedValue: Value? {
        get { box?.value }
        _modify {
            var value: Value?
            if isKnownUniquelyReferenced(&box), let box { swap(&value, &box.value) } else { value = box?.value }
            defer { put(value) }
            yield &value
        }
        set { put(newValue) }
    }

    private mutating func put(_ value: Value?) {
        guard value != nil else { return box = nil }
        if isKnownUniquelyReferenced(&box), let box { box.value = value } else { box = Box(value) }
    }
}

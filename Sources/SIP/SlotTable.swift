internal import CallBasics

/// The name of an entry in a `SlotTable`; after the entry's end it stays unused.
package protocol SlotName: Hashable, Sendable {
    var slot: Int { get }
    var serial: UInt64 { get }
    init(slot: Int, serial: UInt64)
}

/// Entries by name, each with a deadline of its own or none.
///
/// The earliest deadline is known at once; setting one takes time by the logarithm of their count.
struct SlotTable<Name: SlotName, Entry: Sendable>: Sendable {
    /// The entry stands by itself, so that slots that wait for one take no room for it.
    private struct Slot: Sendable {
        /// 0 while there is none.
        var serial: UInt64 = 0
        @Boxed var entry: Entry? = nil
    }

    private var entries: [Slot] = []
    private var freed: [Int] = []
    private var nextSerial: UInt64 = 0
    private var deadlines = DeadlineQueue()

    var count: Int { entries.count - freed.count }
    var deadline: MediaTime? { deadlines.first?.time }
    /// All names, in no order.
    var names: [Name] {
        entries.indices.compactMap { slot in
            entries[slot].serial == 0 ? nil : Name(slot: slot, serial: entries[slot].serial)
        }
    }

    /// The entry whose deadline has come first, if it has come at `now`.
    func due(at now: MediaTime) -> Name? {
        guard let first = deadlines.first, first.time <= now else { return nil }
        return Name(slot: first.slot, serial: entries[first.slot].serial)
    }

    /// Reads an entry, or puts a changed one in its place; nil where it has left.
    subscript(name: Name) -> Entry? {
        get { holds(name) ? entries[name.slot].entry : nil }
        set {
            guard holds(name), let newValue else { return }
            entries[name.slot].entry = newValue
        }
    }

    /// A new entry, which may hold its own name.
    mutating func insert(_ make: (Name) -> Entry) -> Name {
        nextSerial += 1
        let slot = freed.popLast() ?? entries.count
        if slot == entries.count { entries.append(Slot()) }
        let name = Name(slot: slot, serial: nextSerial)
        entries[slot] = Slot(serial: nextSerial, entry: make(name))
        return name
    }

    mutating func setDeadline(of name: Name, to time: MediaTime?) {
        guard holds(name) else { return }
        deadlines.set(name.slot, to: time)
    }

    @discardableResult
    mutating func remove(_ name: Name) -> Entry? {
        guard holds(name), let entry = entries[name.slot].entry else { return nil }
        deadlines.set(name.slot, to: nil)
        entries[name.slot] = Slot()
        freed.append(name.slot)
        return entry
    }

    private func holds(_ name: Name) -> Bool {
        name.serial != 0 && entries.indices.contains(name.slot) && entries[name.slot].serial == name.serial
    }
}

internal import Glibc

/// The items of a payload, in the order of its bytes: found, counted and checked in one pass, before anything is built.
///
/// An item's content follows it: an array's elements, a map's keys and values in turn. `next` of an item is the one after
/// all that is in it, so that a value is skipped in one step however large it is.
struct CBORItems {
    private struct Item {
        let offset: UInt32
        var next: UInt32
    }

    /// A container whose end is not reached.
    private struct Level {
        let item: Int
        let isMap: Bool
        /// Items that it has yet to get; in a map, a key is next when they are even.
        var missing: Int
    }

    private let reader: CBORReader
    private var items: [Item] = []
    /// Of maps with many keys.
    private var keys: [Int: CBORKeys] = [:]

    /// Finds and checks them all.
    ///
    /// Shape: one item and nothing after it; definite lengths; keys are texts, each once in its map; texts are UTF-8; no
    /// tags; false, true and null are the simple values. Longer heads than needed are taken.
    ///
    /// - Throws: `CBORFault` when the bytes are not that, or go beyond the bounds.
    init(checking reader: CBORReader, within bounds: MessageBounds) throws(CBORFault) {
        self.reader = reader
        guard reader.count <= UInt32.max else { throw CBORFault("a payload of \(reader.count) bytes.") }
        guard reader.count > 0 else { throw CBORFault("there is no value, the payload is empty.") }
        items.reserveCapacity(min(reader.count, 32))
        try check(within: bounds)
    }

    // MARK: Navigation

    func head(_ item: Int) -> CBORHead { reader.head(at: Int(items[item].offset)) }

    /// The item after this one and all that is in it.
    func next(_ item: Int) -> Int { Int(items[item].next) }

    /// The text's bytes.
    func utf8(_ item: Int) -> UnsafeRawBufferPointer {
        let head = head(item)
        return reader.slice(head.end, Int(head.argument))
    }

    /// The key in `map` that has these bytes: the search begins at the key `hint`, and goes once around.
    func key(_ name: UnsafeRawBufferPointer, in map: Int, from hint: Int) -> Int? {
        let head = head(map)
        guard head.argument <= CBORKeys.maximumScannedCount else {
            return keys[map]?.find(name, self)
        }
        let end = next(map)
        var key = hint
        for _ in 0..<head.argument {
            if key >= end { key = map + 1 }
            if utf8(key).hasBytes(of: name) { return key }
            key = next(key + 1)
        }
        return nil
    }

    // MARK: The pass

    private mutating func check(within bounds: MessageBounds) throws(CBORFault) {
        var outer: [Level] = []
        // What has the payload as its only item.
        var level = Level(item: -1, isMap: false, missing: 1)
        var offset = 0
        var valueCount = 1
        repeat {
            let head = try reader.checkedHead(at: offset)
            if level.isMap, level.missing & 1 == 0, head.major != .text {
                throw CBORFault(at: offset, "a key that is \(head.name), not a text.")
            }
            items.append(Item(offset: UInt32(offset), next: UInt32(items.count + 1)))
            let itemOffset = offset
            offset = head.end
            switch head.major {
            case .unsigned, .negative: break
            case .bytes, .text:
                guard head.argument <= reader.count - offset else {
                    throw CBORFault(at: itemOffset, "\(head.name) of \(head.argument) bytes, which are not there.")
                }
                let content = reader.slice(offset, Int(head.argument))
                if head.major == .text, !Self.isUTF8(content) {
                    throw CBORFault(at: itemOffset, "a text that is not UTF-8.")
                }
                offset += content.count
            case .array, .map:
                guard outer.count < bounds.maximumDepth else {
                    throw CBORFault("more than \(bounds.maximumDepth) levels of nesting.")
                }
                guard head.argument <= bounds.maximumValueCount - valueCount else {
                    throw CBORFault("more than \(bounds.maximumValueCount) values.")
                }
                let itemsPerValue = head.major == .map ? 2 : 1
                // An item has a byte or more.
                guard head.argument <= (reader.count - offset) / itemsPerValue else {
                    throw CBORFault(at: itemOffset, "\(head.name) of \(head.argument) values, which are not there.")
                }
                valueCount += Int(head.argument)
                guard head.argument > 0 else { break }
                outer.append(level)
                level = Level(
                    item: items.count - 1,
                    isMap: head.major == .map,
                    missing: Int(head.argument) * itemsPerValue
                )
                continue
            case .tag: throw CBORFault(at: itemOffset, "a tag.")
            case .simple:
                guard CBORHead.Simple.no...CBORHead.Simple.double ~= head.detail, head.detail != 23, head.detail != 24
                else { throw CBORFault(at: itemOffset, "a simple value other than false, true and null.") }
            }
            level.missing -= 1
            while level.missing == 0, let parent = outer.popLast() {
                items[level.item].next = UInt32(items.count)
                if level.isMap { try checkKeys(of: level.item) }
                level = parent
                level.missing -= 1
            }
        } while level.missing > 0
        guard offset == reader.count else { throw CBORFault(at: offset, "bytes after the value.") }
    }

    private static func isUTF8(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // Most texts are ASCII, seen eight bytes at a time.
        var offset = 0
        while offset + 8 <= bytes.count {
            guard bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self) & 0x8080_8080_8080_8080 == 0 else {
                break
            }
            offset += 8
        }
        while offset < bytes.count, bytes[offset] < 0x80 { offset += 1 }
        if offset == bytes.count { return true }
        let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
        return (try? UTF8Span(validating: Span(_unsafeBytes: rest))) != nil
    }

    /// Sees that each key of a map is there once.
    private mutating func checkKeys(of map: Int) throws(CBORFault) {
        let count = head(map).argument
        if count > CBORKeys.maximumScannedCount {
            var keys = CBORKeys(count: Int(count))
            var key = map + 1
            for _ in 0..<count {
                if let earlier = keys.insert(key, self) { throw duplicate(earlier) }
                key = next(key + 1)
            }
            self.keys[map] = keys
            return
        }
        var key = map + 1
        for index in 0..<count {
            let name = utf8(key)
            var earlier = map + 1
            for _ in 0..<index {
                if utf8(earlier).hasBytes(of: name) { throw duplicate(key) }
                earlier = next(earlier + 1)
            }
            key = next(key + 1)
        }
    }

    private func duplicate(_ key: Int) -> CBORFault {
        CBORFault(at: Int(items[key].offset), "the key \(String(decoding: utf8(key), as: UTF8.self)) a second time.")
    }
}

extension UnsafeRawBufferPointer {
    /// Whether these are the same bytes.
    @inline(__always)
    func hasBytes(of other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count, let mine = baseAddress, let others = other.baseAddress else {
            return count == other.count
        }
        return memcmp(mine, others, count) == 0
    }
}

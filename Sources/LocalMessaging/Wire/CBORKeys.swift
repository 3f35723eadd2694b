/// The keys of one large map, found by their hash.
///
/// Hashes are seeded for each process (`Hasher`), so that a sender cannot choose keys that meet in one place.
struct CBORKeys {
    /// Up to so many keys a map is looked through key by key.
    static let maximumScannedCount = 16

    /// Keys by their hash, or the next free place after it; 0 is free, as no key is the first item.
    private var places: [UInt32]

    init(count: Int) {
        var placeCount = 64
        while placeCount < 2 * count { placeCount *= 2 }
        places = [UInt32](repeating: 0, count: placeCount)
    }

    /// Adds a key.
    ///
    /// - Returns: a key of the same bytes when there is one; then nothing is added.
    mutating func insert(_ key: Int, _ items: CBORItems) -> Int? {
        let name = items.utf8(key)
        let place = place(of: name, items)
        if places[place] != 0 { return Int(places[place]) }
        places[place] = UInt32(key)
        return nil
    }

    func find(_ name: UnsafeRawBufferPointer, _ items: CBORItems) -> Int? {
        let key = places[place(of: name, items)]
        return key == 0 ? nil : Int(key)
    }

    private func place(of name: UnsafeRawBufferPointer, _ items: CBORItems) -> Int {
        var hasher = Hasher()
        hasher.combine(bytes: name)
        var place = hasher.finalize() & (places.count - 1)
        // Half of the places are free.
        while places[place] != 0, !items.utf8(Int(places[place])).hasBytes(of: name) {
            place = (place + 1) & (places.count - 1)
        }
        return place
    }
}

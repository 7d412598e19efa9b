print("pkg.train")
